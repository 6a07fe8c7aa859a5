"""Bytes in the database: data sets and artefacts, in chunks that neither side must hold whole."""

import hashlib
import io
from collections.abc import Collection, Iterator
from typing import BinaryIO

from sqlalchemy import ForeignKey, LargeBinary, String, delete, insert, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.db.database import Database, Record
from service.db.identifiers import new_id

CHUNK_BYTES = 2**20


class BlobGoneError(Exception):
    """A blob was deleted while it was read."""


class BlobRecord(Record):
    """A sequence of bytes that never changes."""

    __tablename__ = "blobs"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int]


class BlobChunkRecord(Record):
    """Up to `CHUNK_BYTES` bytes of a blob."""

    __tablename__ = "blob_chunks"

    blob_id: Mapped[str] = mapped_column(
        ForeignKey("blobs.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)


def store(session: Session, content: bytes | BinaryIO) -> BlobRecord:
    """Add `content` as a new blob to the session's transaction.

    A file must be seekable; it is read from its beginning and never held whole.
    """
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    running = hashlib.sha256()
    size = 0
    for chunk in _chunks(file):
        running.update(chunk)
        size += len(chunk)
    blob = BlobRecord(id=new_id("blob"), sha256=running.hexdigest(), size=size)
    session.add(blob)
    session.flush()
    for position, chunk in enumerate(_chunks(file)):
        row = {"blob_id": blob.id, "position": position, "data": chunk}
        session.execute(insert(BlobChunkRecord), row)
    return blob


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def remove(session: Session, blob_ids: Collection[str]) -> None:
    """Delete blobs that nothing refers to any more."""
    session.execute(delete(BlobRecord).where(BlobRecord.id.in_(blob_ids)))


def load(session: Session, blob_id: str) -> bytes:
    """Return all bytes of a blob."""
    query = (
        select(BlobChunkRecord.data)
        .where(BlobChunkRecord.blob_id == blob_id)
        .order_by(BlobChunkRecord.position)
    )
    return b"".join(session.scalars(query))


def stream(database: Database, blob: BlobRecord) -> Iterator[bytes]:
    """Yield a blob chunk by chunk, each in a short transaction of its own.

    Raises `BlobGoneError` if it is deleted meanwhile.
    """
    num_sent = position = 0
    while num_sent < blob.size:
        with database.snapshot() as session:
            chunk = session.get(BlobChunkRecord, (blob.id, position))
        if chunk is None:
            raise BlobGoneError(f"deleted after {num_sent} of its {blob.size} bytes")
        yield chunk.data
        num_sent += len(chunk.data)
        position += 1
