"""What a finished simulation says."""

from typing import Literal

from pydantic import Field

from service.results.base import ResultModel
from service.results.schemas import VersionsRead


class SimulationResult(ResultModel):
    """The document of one simulation: which data set it has made."""

    kind: Literal["simulation"] = Field(description="The job's kind.")
    dataset_id: str = Field(description="The data set; its true graph is attached to it.")
    dataset_name: str = Field(description="Its name.")
    names: list[str] = Field(description="Its variables.")
    n_rows: int = Field(ge=1, description="Its rows.")
    n_missing: int = Field(ge=0, description="Cells that were discarded.")
    n_edges: int = Field(ge=0, description="Edges of the true graph.")
    diagonal: float = Field(
        gt=0, description="Every K_ii: the largest sum of a row's other entries, plus 0.01."
    )
    seed: int = Field(ge=0, description="Seed of every random draw.")
    versions: VersionsRead = Field(description="What computed it.")
