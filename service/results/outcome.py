"""What the worker hands over when a job has succeeded, ready to be stored."""

from dataclasses import dataclass

from service.datasets.repository import NewDataset
from service.results.base import ResultModel
from service.results.edges import Edge


@dataclass(frozen=True)
class Artefact:
    """A derived file: a path-like name such as `figures/network.svg`, its type and its bytes."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class MadeDataset:
    """A data set that a job has made, with its true graph as pairs of names."""

    data: NewDataset
    ground_truth: list[list[str]]


@dataclass(frozen=True)
class Outcome:
    """Everything that one finished job leaves."""

    document: ResultModel
    edges: list[Edge]
    artefacts: list[Artefact]
    dataset: MadeDataset | None = None
