"""Scorings: an estimated network held against a graph, which may come long after it."""

from typing import Literal

from pydantic import Field

from service.datasets.graph_documents import GroundTruthCreate
from service.jobs.specs.base import SpecModel, Tag


class ScoringSpec(SpecModel):
    """An estimated network, scored against a graph."""

    kind: Literal["scoring"] = Field("scoring", description="The job's kind.")
    job_id: str = Field(
        description="Identifier of an estimation that has succeeded: what is scored."
    )
    ground_truth: GroundTruthCreate | None = Field(
        default=None,
        description="The graph to score against, among the estimation's variables; null: the one "
        "that its data set has now. A job keeps its graph and shows null here.",
    )
    tag: Tag = None
