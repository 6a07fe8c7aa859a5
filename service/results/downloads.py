"""Artefacts as answers, which never change."""

from fastapi import Request, Response

from service.db.blobs import BlobRecord
from service.db.database import Database
from service.http.downloads import send_blob
from service.http.etag import IMMUTABLE, etag_of, is_fresh
from service.http.problems import ProblemCode, ProblemError
from service.jobs import result_access as access
from service.jobs.result_records import ArtefactRecord


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
    with database.repeatable_read() as session:
        job, _ = access.result_of(session, job_id)
        if needs_truth:
            access.require_truth(job)
        artefact = session.get(ArtefactRecord, (job_id, name))
        if artefact is None:
            raise ProblemError(
                ProblemCode.NOT_FOUND,
                f"This result has no file `{name}`; its `files` lists those it has.",
            )
        blob = session.get_one(BlobRecord, artefact.blob_id)
        headers = {
            "ETag": etag_of(blob.sha256),
            "Cache-Control": IMMUTABLE,
        }
        if is_fresh(request, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        if as_file:
            # Identifiers and artefact names are plain ASCII, so nothing needs to be escaped.
            file_name = f"{job_id}-{name.replace('/', '-')}"
            headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
        return send_blob(session, database, blob, artefact.media_type, headers)
