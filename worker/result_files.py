"""The files of a result by their names, and where the API hands out each of them."""

from typing import NamedTuple

from service.results.formats import GraphFormat, TableFormat
from service.results.vocabulary import EdgeScore, Figure

RESULT = "result.json"
_TABLES = ("precision", "partial-correlations", "imputations")


class Address(NamedTuple):
    """A path below a job's result, and the query that goes with it."""

    path: str
    query: dict[str, str]


def addresses(*, has_truth: bool) -> dict[str, Address]:
    """Return every file of a result except `RESULT` itself, by name.

    The names are those that the worker gives its artefacts. ROC curves exist where the job had a
    true graph to be scored against.
    """
    files = {"objective.csv": Address("objective/content", {})}
    for stem in _TABLES:
        files[f"{stem}.json"] = Address(stem, {})
        for table_format in TableFormat:
            query = {"format": table_format.value}
            files[f"{stem}.{table_format}"] = Address(f"{stem}/content", query)
    for graph_format in GraphFormat:
        files[f"graph.{graph_format}"] = Address("graph/content", {"format": graph_format.value})
    for figure in Figure:
        if has_truth or figure is not Figure.ROC:
            files[f"figures/{figure}.svg"] = Address(f"figures/{figure}.svg", {})
    if has_truth:
        for score in EdgeScore:
            files[f"roc/{score}.json"] = Address("roc", {"score": score.value})
    return files
