"""What files of results are sent as."""

from enum import StrEnum


class MediaType(StrEnum):
    """What a file of a result is sent as; the worker stores it with the file."""

    JSON = "application/json"
    CSV = "text/csv"
    NPY = "application/x-npy"
    PARQUET = "application/vnd.apache.parquet"
    GRAPHML = "application/graphml+xml"
    GEXF = "application/gexf+xml"
    GML = "text/x-gml"
    DOT = "text/vnd.graphviz"
    HTML = "text/html"
    SVG = "image/svg+xml"
    PDF = "application/pdf"
    PNG = "image/png"
