"""Damaged files to read: good ones of every format, and what one seed makes of them."""

import io
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

# Lengths and counts stand in files as words of these sizes, and go wrong at their ends.
_WORD_BYTES = (1, 2, 4, 8)
_TEXT_PIECES = (
    *(b'"', b'""', b",", b";", b"\t", b"\n", b"\r\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf"),
    *(b"[", b"]", b"{", b"}", b":", b"null", b"NaN", b"-Infinity", b"\\ud800", b"\\u0000", b"\\"),
    *(b"1e999", b"-", b"1" * 400, b"0x1p3", b"<", b">=", b"NA", b"sep=;\n", b"[" * 2000),
    *("é".encode(), "\u2028".encode(), b"\xed\xa0\x80", b"=1+1", b" " * 1000, b"," * 300),
)


class GoodFile(NamedTuple):
    """A file that can be read under these options of an upload."""

    format: str
    content: bytes
    options: dict[str, str]


class Mutant(NamedTuple):
    """A damaged file, and the number that makes it again."""

    number: int
    format: str
    content: bytes
    options: dict[str, str]


def mutants(seed: int, numbers: range) -> Iterator[Mutant]:
    """Yield the files of these numbers; a file depends on the seed and its number alone."""
    originals = list(good_files())
    for number in numbers:
        rng = random.Random(f"{seed} {number}")
        original = rng.choice(originals)
        other = rng.choice([file for file in originals if file.format == original.format])
        content = bytearray(original.content)
        for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
            _change(rng, content, other.content, is_text=original.format in ("csv", "json"))
        yield Mutant(number, original.format, bytes(content), original.options)


def _change(rng: random.Random, content: bytearray, other: bytes, *, is_text: bool) -> None:
    place = rng.randrange(len(content) + 1)
    length = rng.choice((1, 2, 4, 8, 64, 1024))
    match rng.choice(["flip", "word", "cut", "remove", "repeat", "splice", "insert", "noise"]):
        case "flip":
            for position in range(place, min(place + 1, len(content))):
                content[position] ^= 1 << rng.randrange(8)
        case "word":
            size = rng.choice(_WORD_BYTES)
            value = rng.choice((0, 1, -1, -2, len(content), 2**15, 2**24, 2 ** (8 * size - 1) - 1))
            word = (value % 2 ** (8 * size)).to_bytes(size, "little")
            content[place : place + size] = word
        case "cut":
            del content[place:]
        case "remove":
            del content[place : place + length]
        case "repeat":
            part = content[place : place + length]
            content[place:place] = part * rng.choice((1, 1, 2, 50))
        case "splice":
            content[place:] = other[rng.randrange(len(other)) :]
        case "insert":
            piece = rng.choice(_TEXT_PIECES) if is_text else rng.randbytes(length)
            content[place:place] = piece
        case "noise":
            content[place : place + length] = rng.randbytes(length)


def good_files() -> Iterator[GoodFile]:
    """Yield tables that can be read, in many ways of writing them."""
    yield from _csv_files()
    yield from _json_files()
    yield from (GoodFile("parquet", content, {}) for content in _parquet_files())
    yield from (GoodFile("arrow", content, {}) for content in _arrow_files())


def _parquet_files() -> Iterator[bytes]:
    table = _table()
    for options in (
        {},
        {"compression": "none", "use_dictionary": False, "write_statistics": False},
        {"compression": "zstd", "data_page_version": "2.0", "row_group_size": 7},
        {"compression": "gzip", "write_page_index": True, "write_page_checksum": True},
        {"compression": "lz4", "store_schema": False, "data_page_size": 64},
        {"compression": "brotli", "version": "1.0"},
    ):
        yield _parquet(table, **options)
    for encoding, columns in (
        ("DELTA_BINARY_PACKED", ["i64", "i32"]),
        ("BYTE_STREAM_SPLIT", ["x", "f32"]),
        ("DELTA_BYTE_ARRAY", ["text"]),
        ("DELTA_LENGTH_BYTE_ARRAY", ["text"]),
        ("RLE", ["flag"]),
    ):
        part = table.select(columns)
        encodings = dict.fromkeys(columns, encoding)
        yield _parquet(part, use_dictionary=False, column_encoding=encodings)


def _arrow_files() -> Iterator[bytes]:
    table = _table()
    for compression in (None, "lz4", "zstd"):
        options = pa.ipc.IpcWriteOptions(compression=compression)
        for write in (pa.ipc.new_file, pa.ipc.new_stream):
            sink = io.BytesIO()
            with write(sink, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=9)
            yield sink.getvalue()


def _parquet(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def _table() -> pa.Table:
    n = 20
    return pa.table(
        {
            "x": pa.array([i / 7 if i % 3 else None for i in range(n)]),
            "f32": pa.array([i * 0.1 for i in range(n)], pa.float32()),
            "i64": pa.array([i**9 for i in range(n)], pa.int64()),
            "i32": pa.array([None if i == 4 else -i for i in range(n)], pa.int32()),
            "u8": pa.array(range(n), pa.uint8()),
            "flag": pa.array([i % 2 == 0 for i in range(n)]),
            "dec": pa.array([Decimal(f"{i}.25") for i in range(n)]),
            "text": pa.array(["<0.5", "2", None, "NA", "17.25"] * (n // 5)),
            "large": pa.array([str(i) for i in range(n)], pa.large_string()),
            "gone": pa.nulls(n),
        }
    )


def _csv_files() -> Iterator[GoodFile]:
    rows = "".join(f"{i / 3:.3f},{i},<0.{i}\n" for i in range(1, 10))
    plain = f"a,b,c\n{rows}"
    commas = plain.replace(",", ";").replace(".", ",")
    for content, options in (
        (plain.encode(), {}),
        (("\ufeff" + commas).encode(), {}),
        (plain.encode("utf-16"), {}),
        (plain.replace("\n", "\r\n").encode("utf-16-le"), {"encoding": "utf-16-le"}),
        (b'"a ""x""","b;c",d\n"1",2,\n\n,,\nNA,"<5",1e-3\n', {}),
        (b"sep=;\nname;wert\n1,5;2\n;ND\n", {}),
        ("größe;länge\n1;2\n3;4\n".encode("cp1252"), {"encoding": "cp1252"}),
        (
            b"title\nx\ty\nkg\tm\n1\t-9\n",
            {"skip_rows": "1", "units_row": "true", "na_values": "-9"},
        ),
    ):
        yield GoodFile("csv", content, options)


def _json_files() -> Iterator[GoodFile]:
    records = [{"a": i / 3, "b": None if i % 2 else i, "c": f"<{i}"} for i in range(9)]
    names = list(records[0])
    columns = {name: [record[name] for record in records] for name in names}
    rows = [list(record.values()) for record in records]
    split = {"columns": names, "index": [*range(9)], "data": rows}
    for document in (records, columns, split):
        yield GoodFile("json", json.dumps(document, indent=1).encode(), {})
    text = json.dumps([{"naïve": True, "水": 2**60}, {"naïve": 1e300}], ensure_ascii=False)
    yield GoodFile("json", text.encode(), {})
    yield GoodFile("json", text.encode("utf-16"), {"format": "json"})
