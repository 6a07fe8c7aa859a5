"""Scorings: an estimated network held against a graph, which may come long after it."""

from typing import Annotated, Literal

from pydantic import Field

from service.datasets.graph_documents import GroundTruthCreate
from service.http.request_model import RequestModel
from service.jobs.specs.base import SpecModel, Tag

EstimationId = Annotated[
    str, Field(description="Identifier of an estimation that has succeeded: what is scored.")
]


class ScoringJobCreate(RequestModel):
    """Ask for an estimated network to be scored against another graph than its data set's."""

    kind: Literal["scoring"] = Field(description="The job's kind.")
    job_id: EstimationId
    ground_truth: GroundTruthCreate | None = Field(
        default=None,
        description="The graph to score against, among the estimation's variables; null: the one "
        "that its data set has now.",
    )
    tag: Tag = None


class ScoringSpec(SpecModel):
    """One scoring; the graph is kept with the job."""

    kind: Literal["scoring"] = Field(description="The job's kind.")
    job_id: EstimationId
    tag: Tag
