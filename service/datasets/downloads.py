"""File names in headers: any name may be stored, none may break out of its header."""

import re
from urllib.parse import quote

from service.datasets.vocabulary import DatasetFormat

# File systems allow 255 bytes; a character takes up to four.
_MAX_CHARACTERS = 60
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.I)
_SUFFIXES = {
    DatasetFormat.CSV: (".csv", ".tsv", ".txt", ".dat"),
    DatasetFormat.JSON: (".json",),
    DatasetFormat.PARQUET: (".parquet", ".pq"),
    DatasetFormat.ARROW: (".arrow", ".feather", ".arrows", ".ipc"),
}


def content_disposition(name: str, dataset_format: DatasetFormat) -> str:
    """Return the header that saves a data set under its name (RFC 6266, RFC 8187).

    The name's last path component is taken, without control characters and what file systems
    refuse; an ASCII form stands beside the exact one.
    """
    file_name = safe_file_name(name, dataset_format)
    fallback = re.sub(r"[^A-Za-z0-9 ._()+-]", "_", file_name)
    return f"attachment; filename=\"{fallback}\"; filename*=UTF-8''{quote(file_name, safe='')}"


def safe_file_name(name: str, dataset_format: DatasetFormat) -> str:
    """Return a name that any file system takes, with a suffix of the format."""
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join(c if c.isprintable() and c not in '<>:"|?*' else "_" for c in last)
    stem = printable.strip(" .") or "dataset"
    suffixes = _SUFFIXES[dataset_format]
    suffix = next((s for s in suffixes if stem.lower().endswith(s)), None)
    suffix = suffixes[0] if suffix is None else stem[-len(suffix) :]
    stem = stem.removesuffix(suffix)[:_MAX_CHARACTERS].strip(" .") or "dataset"
    return f"_{stem}{suffix}" if _RESERVED.fullmatch(stem) else f"{stem}{suffix}"
