"""The files of results by their names, as users rely on them."""

from pathlib import Path

TABLES = ("precision", "partial-correlations", "imputations")
SCORES = ("abs_precision", "precision", "abs_scaled_interaction", "scaled_interaction")
GRAPH_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "graphml": "application/graphml+xml",
    "gexf": "application/gexf+xml",
    "gml": "text/x-gml",
    "dot": "text/vnd.graphviz",
    "cyjs": "application/json",
    "cx2": "application/json",
}
TABLE_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "npy": "application/x-npy",
    "parquet": "application/vnd.apache.parquet",
}


def figure_files(*names: str) -> set[str]:
    """Return the files of figures."""
    return {f"figures/{name}.{ending}" for name in names for ending in ("svg", "pdf", "png")}


NETWORK_FILES = {
    "objective.csv",
    "variables.csv",
    "report.html",
    *(f"{stem}.{ending}" for stem in TABLES for ending in TABLE_TYPES),
    *(f"graph.{ending}" for ending in GRAPH_TYPES),
    *figure_files("network", "network-circle", "heatmap", "intervals", "centrality", "objective"),
}
# Of a job that had a true graph besides.
SCORED_FILES = {*figure_files("roc"), *(f"roc/{score}.json" for score in SCORES)}
MIXTURE_FILES = {
    "responsibilities.csv",
    "responsibilities.parquet",
    "objective.csv",
    "report.html",
    *figure_files("objective", "density"),
}


def written(out: Path) -> set[str]:
    """Return the files below a folder, by their paths there."""
    return {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
