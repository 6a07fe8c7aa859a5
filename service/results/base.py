"""What every part of a result is."""

from pydantic import BaseModel, ConfigDict


class ResultModel(BaseModel):
    """Base of every part of a result."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
