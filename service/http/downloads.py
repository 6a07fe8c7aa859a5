"""Blobs as answers: small ones whole, large ones chunk by chunk."""

import logging
from collections.abc import Mapping

from fastapi import Response
from fastapi.responses import StreamingResponse
from sqlalchemy.orm import Session
from starlette.types import Receive, Scope, Send

from service.db import blobs
from service.db.blobs import BlobGoneError, BlobRecord
from service.db.database import UNREACHABLE, Database

logger = logging.getLogger("service")


def send_blob(
    session: Session,
    database: Database,
    blob: BlobRecord,
    media_type: str,
    headers: Mapping[str, str],
) -> Response:
    """Return a blob that the session has found as an answer.

    Most are small, and are answered whole though they are deleted meanwhile.
    """
    headers = {**headers, "Content-Length": str(blob.size)}
    if blob.size <= blobs.CHUNK_BYTES:
        return Response(blobs.load(session, blob.id), media_type=media_type, headers=headers)
    return Download(blobs.stream(database, blob), media_type=media_type, headers=headers)


class Download(StreamingResponse):
    """An answer that ends early, with a warning in the log, if it is deleted while it is sent.

    The client has the status by then; it sees that bytes are missing of its `Content-Length` and
    that the connection is closed. Nothing is held for it from its beginning to its end: a client
    that takes an hour would keep a connection for an hour, and the rows that others delete.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            await super().__call__(scope, receive, send)
        except (BlobGoneError, *UNREACHABLE) as error:
            # The server closes the connection of an answer that is not complete.
            logger.warning("a download was cut off: %s", error)
