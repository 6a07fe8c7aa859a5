"""File names in headers: whatever a data set is called, the header says one safe file name."""

import re
from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st

from service.datasets.downloads import content_disposition
from service.datasets.vocabulary import DatasetFormat

HEADER = re.compile(
    r"attachment; filename=\"([A-Za-z0-9 ._()+-]+)\"; filename\*=UTF-8''([\x21-\x7e]+)"
)
SEPARATORS_AND_QUOTES = re.compile(r"[/\\<>:\"|?*]")
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.I)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
HOSTILE = st.lists(
    st.sampled_from(
        ["..", "/", "\\", '"', ";", "\r\n", "\0", "\u202e", "con", ".", " ", "é", "水", "𝛼", "%0d"]
    )
)


@given(name=NAMES | HOSTILE.map("".join), dataset_format=st.sampled_from(DatasetFormat))
@example(name="invoice\u202evsc.exe", dataset_format=DatasetFormat.CSV)
@example(name='a"; filename="b\r\nSet-Cookie: x=1', dataset_format=DatasetFormat.JSON)
@example(name="..\\..\\con.csv", dataset_format=DatasetFormat.CSV)
@example(name="𝛼" * 300, dataset_format=DatasetFormat.PARQUET)
def test_any_name_becomes_one_safe_file_name(name: str, dataset_format: DatasetFormat) -> None:
    header = content_disposition(name, dataset_format)
    match = HEADER.fullmatch(header)
    assert match, header
    for file_name in (match[1], unquote(match[2], errors="strict")):
        assert file_name.isprintable()  # no line end, no mark that turns the direction of reading
        assert not SEPARATORS_AND_QUOTES.search(file_name)
        assert file_name == file_name.strip(" ")
        assert not file_name.startswith(".")
        assert not file_name.endswith(".")
        assert not RESERVED.fullmatch(file_name)
        assert len(file_name.encode()) <= 255
