"""What a body is, told from its first and last bytes."""

import re
from typing import BinaryIO

from service.datasets.options import ReadOptions
from service.datasets.readers.refusals import not_for, unreadable
from service.datasets.vocabulary import FORMATS, DatasetFormat, RequestedFormat
from service.http.problems import ProblemCode, ProblemError, ProblemItem

_START_BYTES = 512
_NO_TABLES = (
    (b"PK\x03\x04", "a ZIP archive or an Excel workbook; save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save the sheet as CSV"),
    (b"\x1f\x8b", "compressed by gzip; send it uncompressed"),
    (b"BZh", "compressed by bzip2; send it uncompressed"),
    (b"\xfd7zXZ", "compressed by xz; send it uncompressed"),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard; send it uncompressed"),
    (b"FEA1", "Feather version 1; write version 2, which is the Arrow file format"),
    (b"%PDF", "a PDF document"),
    (b"\x89HDF", "an HDF5 file; export the table as CSV or Parquet"),
    (b"RDX", "an R workspace; export the table as CSV or Parquet"),
)
_ARROW_STREAM = b"\xff\xff\xff\xff"
# Brackets also begin CSV headers such as [Ca],[Mg]; what follows them tells JSON apart.
_JSON_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*["}]|\[\s*[\[{"\]0-9tfn-])')
_HTML_START = re.compile(rb"\s*<(?:!doctype|html|\?xml)", re.I)


def determine(file: BinaryIO, options: ReadOptions) -> DatasetFormat:
    """Return the format of a file, and refuse options that do not apply to it.

    Raises `ProblemError` where the content is of another format than was declared, or of none
    that can be read.
    """
    file.seek(0)
    start = file.read(_START_BYTES)
    if not start:
        raise unreadable("The file is empty.")
    found = recognise(start)
    if options.format is RequestedFormat.AUTO:
        dataset_format = found or _refuse_foreign(start)
    else:
        dataset_format = DatasetFormat(options.format.value)
        if dataset_format is not found and not _may_be(dataset_format, found):
            raise unreadable(
                f"`format={options.format}` was declared, and the content is not that.",
                ProblemItem(message="Does not fit the content.", parameter="format"),
            )
    _refuse_options(options, dataset_format)
    return dataset_format


def recognise(start: bytes) -> DatasetFormat | None:
    """Return the format that the first bytes tell; CSV has no mark of its own."""
    if start.startswith(b"PAR1"):
        return DatasetFormat.PARQUET
    if start.startswith((b"ARROW1", _ARROW_STREAM)):
        return DatasetFormat.ARROW
    if _foreign(start):
        return None
    return DatasetFormat.JSON if _JSON_START.match(start) else DatasetFormat.CSV


def _may_be(declared: DatasetFormat, found: DatasetFormat | None) -> bool:
    # Text is text: whether it is JSON or CSV, the declaration decides.
    texts = (DatasetFormat.CSV, DatasetFormat.JSON)
    return declared in texts and found in texts


def _foreign(start: bytes) -> str | None:
    if _HTML_START.match(start):
        return "an HTML or XML document, a log-in or error page perhaps"
    return next((what for magic, what in _NO_TABLES if start.startswith(magic)), None)


def _refuse_foreign(start: bytes) -> DatasetFormat:
    raise ProblemError(
        ProblemCode.UNSUPPORTED_MEDIA_TYPE,
        f"The content is {_foreign(start)}. What is read: {FORMATS}.",
    )


def _refuse_options(options: ReadOptions, dataset_format: DatasetFormat) -> None:
    meaningless = {
        DatasetFormat.CSV: (),
        DatasetFormat.JSON: ("delimiter", "decimal", "skip_rows", "units_row"),
        DatasetFormat.PARQUET: ("delimiter", "decimal", "skip_rows", "units_row", "encoding"),
        DatasetFormat.ARROW: ("delimiter", "decimal", "skip_rows", "units_row", "encoding"),
    }
    for option in meaningless[dataset_format]:
        if getattr(options, option):
            raise not_for(option, dataset_format)
