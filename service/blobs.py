"""Bytes in the database: data sets and artefacts, in chunks that neither side must hold whole."""

import hashlib
from collections.abc import Iterator

from sqlalchemy import ForeignKey, LargeBinary, String, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.database import Database, Record
from service.identifiers import new_id

CHUNK_BYTES = 2**20


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


def store(session: Session, content: bytes) -> BlobRecord:
    """Add `content` as a new blob to the session's transaction."""
    blob = BlobRecord(
        id=new_id("blob"), sha256=hashlib.sha256(content).hexdigest(), size=len(content)
    )
    session.add(blob)
    session.flush()
    view = memoryview(content)
    for position, start in enumerate(range(0, len(content), CHUNK_BYTES)):
        chunk = bytes(view[start : start + CHUNK_BYTES])
        session.add(BlobChunkRecord(blob_id=blob.id, position=position, data=chunk))
        session.flush()
    return blob


def load(session: Session, blob_id: str) -> bytes:
    """Return all bytes of a blob."""
    query = (
        select(BlobChunkRecord.data)
        .where(BlobChunkRecord.blob_id == blob_id)
        .order_by(BlobChunkRecord.position)
    )
    return b"".join(session.scalars(query))


def stream(database: Database, blob_id: str) -> Iterator[bytes]:
    """Yield a blob chunk by chunk, each in a short transaction of its own."""
    position = 0
    while True:
        with database.snapshot() as session:
            chunk = session.get(BlobChunkRecord, (blob_id, position))
        if chunk is None:
            return
        yield chunk.data
        position += 1
