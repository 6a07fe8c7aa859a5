"""Bytes to characters."""

import codecs

import pytest

TABLE = "temp °C,NO3 (µg/L)\n12.1,350\n11.8,\n"


@pytest.mark.parametrize(
    ("mark", "encoding", "stated"),
    [
        (b"", "utf-8", "utf-8"),
        (codecs.BOM_UTF8, "utf-8", "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16"),
        (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32"),
    ],
)
def test_utf_8_and_marked_encodings_are_read_and_stated(read, mark, encoding, stated):
    dataset = read(mark + TABLE.replace(",", "\t").encode(encoding))
    assert dataset.table.column_names == ["temp °C", "NO3 (µg/L)"]
    assert (dataset.summary.encoding, dataset.summary.encoding_detected) == (stated, True)
    has_change = [change.code for change in dataset.summary.changes]
    assert has_change == (["byte-order-mark-skipped"] if mark else [])


@pytest.mark.parametrize("encoding", ["cp1252", "iso-8859-1", "mac-roman", "utf-16-le"])
def test_a_declared_encoding_is_used(read, encoding):
    summary = read(TABLE.encode(encoding), encoding=encoding).summary
    assert summary.columns[0].name == "temp °C"
    assert (summary.encoding, summary.encoding_detected) == (encoding, False)


def test_bytes_that_do_not_decode_are_refused_with_their_position(refuse):
    problem = refuse(TABLE.encode("cp1252"))
    assert "position 5" in problem.detail
    assert "encoding=cp1252" in problem.detail
    assert problem.errors[0].line == 1


def test_the_position_is_told_beyond_the_first_block(refuse):
    rows = b"1,2\n" * 700_000
    problem = refuse(b"a,b\n" + rows + b"\xe9,2\n")
    assert f"position {4 + len(rows)} " in problem.detail
    assert problem.errors[0].line == 700_002


def test_utf_16_without_a_mark_is_refused_with_the_encoding_to_set(refuse):
    assert "encoding=utf-16-le" in refuse("é,b\n1,2\n".encode("utf-16-le")).detail


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (codecs.BOM_UTF8 + b"a,b\n1,2\n", "cp1252"),
        (codecs.BOM_UTF16_LE + "a,b\n1,2\n".encode("utf-16-le"), "utf-8"),
        (codecs.BOM_UTF16_LE + "a,b\n1,2\n".encode("utf-16-le"), "utf-16-be"),
        ("a,b\n1,2\n".encode("utf-16-le"), "utf-16"),
    ],
)
def test_a_declaration_that_the_mark_contradicts_is_refused(refuse, content, encoding):
    assert refuse(content, encoding=encoding).errors[0].parameter == "encoding"


def test_a_doubtful_declaration_is_warned_of(read):
    codes = [w.code for w in read(TABLE.encode(), encoding="cp1252").summary.warnings]
    assert "encoding-doubtful" in codes


def test_replacement_marks_in_names_are_refused(refuse):
    assert "U+FFFD" in refuse("temp \ufffdC,b\n1,2\n").detail
