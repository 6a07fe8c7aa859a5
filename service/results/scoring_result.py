"""What a finished scoring says."""

from typing import Literal

from pydantic import Field

from service.results.base import ResultModel
from service.results.schemas import ScoreRead, VersionsRead


class ScoringResult(ResultModel):
    """The document of one scoring: agreement of an estimated network with a graph."""

    kind: Literal["scoring"] = Field(description="The job's kind.")
    scored_job_id: str = Field(description="The estimation that was scored.")
    names: list[str] = Field(description="Its variables.")
    n_true_edges: int = Field(ge=0, description="Edges of the graph it was scored against.")
    n_pairs: int = Field(ge=1, description="All pairs.")
    scores: list[ScoreRead] = Field(description="Agreement, every score once.")
    versions: VersionsRead = Field(description="What computed it.")
