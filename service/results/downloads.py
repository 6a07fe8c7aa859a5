"""Artefacts as answers: those that are large streamed chunk by chunk, all never changing."""

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from service import blobs
from service.blobs import BlobRecord
from service.conditional import IMMUTABLE, etag_of, is_fresh
from service.database import Database
from service.problems import ProblemCode, ProblemError
from service.results import access
from service.results.records import ArtefactRecord


def send_artefact(
    request: Request,
    database: Database,
    job_id: str,
    name: str,
    *,
    as_file: bool,
    needs_truth: bool = False,
) -> Response:
    """Return the artefact of a result, or 304 if the client has it; `as_file` names a file.

    Raises `ProblemError` if there is no such result, or no such part of it.
    """
    with database.moment() as session:
        job, _ = access.result_of(session, job_id)
        if needs_truth:
            access.require_truth(job)
        artefact = session.get(ArtefactRecord, (job_id, name))
        if artefact is None:
            raise ProblemError(ProblemCode.NOT_FOUND, f"This result has no `{name}`.")
        blob = session.get_one(BlobRecord, artefact.blob_id)
        headers = {
            "ETag": etag_of(blob.sha256),
            "Cache-Control": IMMUTABLE,
            "Vary": "Accept",
        }
        if is_fresh(request, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        # Most are small, and are answered whole though they are deleted meanwhile.
        is_small = blob.size <= blobs.CHUNK_BYTES
        content = blobs.load(session, blob.id) if is_small else None
    headers["Content-Length"] = str(blob.size)
    if as_file:
        # Identifiers and artefact names are plain ASCII, so nothing needs to be escaped.
        file_name = f"{job_id}-{name.replace('/', '-')}"
        headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
    if content is not None:
        return Response(content, media_type=artefact.media_type, headers=headers)
    return StreamingResponse(
        blobs.stream(database, blob.id), media_type=artefact.media_type, headers=headers
    )
