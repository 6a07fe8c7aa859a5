"""What an Arrow stream announces, told from its message headers alone.

Compressed bodies and null columns can unfold to any size, so rows and bytes are counted before
anything is decoded. The headers are FlatBuffers; pyarrow shows their bytes and not their fields.
Source: Arrow columnar format, "Encapsulated message format"; format/Message.fbs.
"""

import struct
from typing import NamedTuple

import pyarrow as pa

_HEADER_FIELD = 2  # Message.header
_LENGTH_FIELD, _BUFFERS_FIELD, _COMPRESSION_FIELD = 0, 2, 3  # of RecordBatch
_BUFFER_STRUCT = struct.Struct("<qq")  # offset and length within the body


class Announced(NamedTuple):
    """Size of all record batches once decoded."""

    num_rows: int
    num_bytes: int


def measure(source: pa.NativeFile) -> Announced:
    """Return the size of a stream's record batches, decoding none of them.

    Raises `pa.ArrowInvalid` or `struct.error` where the stream is damaged.
    """
    num_rows = num_bytes = 0
    for message in pa.ipc.MessageReader.open_stream(source):
        if message.type == "record batch":
            metadata = message.metadata.to_pybytes()
            batch = _follow(metadata, struct.unpack_from("<I", metadata, 0)[0], _HEADER_FIELD)
            num_rows += _length(metadata, batch)
            num_bytes += _decoded_bytes(metadata, batch, message.body)
    return Announced(num_rows, num_bytes)


def _length(metadata: bytes, batch: int) -> int:
    place = _field(metadata, batch, _LENGTH_FIELD)
    # A field at its default value, 0, is left out.
    length = 0 if place is None else int(struct.unpack_from("<q", metadata, place)[0])
    if length < 0:
        raise pa.ArrowInvalid(f"a record batch announces {length} rows")
    return length


def _decoded_bytes(metadata: bytes, batch: int, body: pa.Buffer) -> int:
    if _field(metadata, batch, _COMPRESSION_FIELD) is None:
        return int(body.size)
    vector = _follow(metadata, batch, _BUFFERS_FIELD)
    num_buffers = struct.unpack_from("<I", metadata, vector)[0]
    total = 0
    for i in range(num_buffers):
        offset, length = _BUFFER_STRUCT.unpack_from(metadata, vector + 4 + i * _BUFFER_STRUCT.size)
        if length:
            # A compressed buffer begins with its decoded size; -1 says it was left as it is.
            decoded = struct.unpack_from("<q", body, offset)[0]
            total += length if decoded == -1 else decoded
    return total


def _follow(metadata: bytes, table: int, number: int) -> int:
    """Return where the table or vector lies that a field refers to."""
    place = _field(metadata, table, number)
    if place is None:
        raise pa.ArrowInvalid("a message lacks a required field")
    return place + int(struct.unpack_from("<I", metadata, place)[0])


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Return where a field of a FlatBuffers table lies, or None if it is left out."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, vtable)[0]
    entry = 4 + 2 * number
    if entry >= size:
        return None
    offset = struct.unpack_from("<H", metadata, vtable + entry)[0]
    return table + offset if offset else None
