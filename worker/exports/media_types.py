"""Media types of the files that a job leaves."""

from enum import StrEnum


class MediaType(StrEnum):
    """What the service says about a file when it hands it out."""

    JSON = "application/json"
    CSV = "text/csv"
    NPY = "application/x-npy"
    PARQUET = "application/vnd.apache.parquet"
    GRAPHML = "application/graphml+xml"
    SVG = "image/svg+xml"
