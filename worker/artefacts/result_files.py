"""The files of an estimation's result by their names: those of a network, and of a mixture."""

from service.results.formats import GraphFormat, TableFormat
from service.results.vocabulary import EdgeScore, Figure

# The document itself, beside its files.
RESULT = "result.json"
# Every file of a mixture's result except `RESULT`.
MIXTURE_FILES = (
    "responsibilities.csv",
    "responsibilities.parquet",
    "objective.csv",
    "figures/objective.svg",
    "figures/density.svg",
)
_TABLES = ("precision", "partial-correlations", "imputations")


def file_names(*, has_truth: bool) -> list[str]:
    """Return every file of an estimation's result except `RESULT`.

    ROC curves exist where the job had a true graph to be scored against.
    """
    names = ["objective.csv"]
    names += [f"{stem}.{ending}" for stem in _TABLES for ending in ("json", *TableFormat)]
    names += [f"graph.{graph_format}" for graph_format in GraphFormat]
    names += [f"figures/{figure}.svg" for figure in Figure if has_truth or figure is not Figure.ROC]
    if has_truth:
        names += [f"roc/{score}.json" for score in EdgeScore]
    return names
