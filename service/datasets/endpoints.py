"""Uploads, what was read from them, and their true graphs."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from service.datasets import lifecycle, repository, uploads
from service.datasets.downloads import content_disposition
from service.datasets.graph_documents import GroundTruthCreate
from service.datasets.ground_truth import (
    GroundTruthRead,
    TruthEdgeRead,
    canonical_edges,
)
from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.records import GroundTruthRecord
from service.datasets.repository import StoredDataset
from service.datasets.sandbox import ReaderBounds, ReadRequest
from service.datasets.schemas import DatasetPage, DatasetPreview, DatasetRead
from service.datasets.vocabulary import FORMATS, DatasetFormat
from service.db.clock import as_datetime
from service.http import pagination as paging
from service.http.dependencies import DatabaseDep, RequireRoomDep, SettingsDep
from service.http.downloads import send_blob
from service.http.etag import IMMUTABLE, etag_of, is_fresh, json_response
from service.http.json_route import JsonRoute
from service.http.openapi_responses import BODY_CODES, Responses, header, problem_responses
from service.http.pagination import CursorQuery, LimitQuery
from service.http.problems import ProblemCode, ProblemError, ProblemItem
from service.http.root_path import address_of
from service.http.scoped_route import ScopedRoute
from service.settings import Settings

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=JsonRoute)
# Named apart: a colon follows the noun, as in `POST /v1/datasets:preview`.
preview_router = APIRouter(tags=["datasets"], route_class=ScopedRoute)

DatasetId = Annotated[str, Path(max_length=40, description="Identifier of the data set.")]

_UPLOAD_CODES = (
    ProblemCode.INVALID_REQUEST,
    ProblemCode.UNREADABLE_DATASET,
    *BODY_CODES,
)
_BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_EXAMPLE = """\
iron,zinc,lead
1.2,0.4,
0.8,,0.3
2.1,0.9,0.7
,0.5,0.2
1.6,0.7,0.5
0.9,0.3,0.4
"""
_UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": f"The file as it is: {FORMATS}. Its Content-Type may be "
        "anything. `Content-Digest` (sha-256 or sha-512, RFC 9530) is checked if sent.",
        "content": {"application/octet-stream": _BYTES | {"example": _EXAMPLE}},
    }
}
_CREATED: Responses = {
    201: {
        "headers": {
            "Location": header("Address of the data set."),
            "ETag": header("SHA-256 of the uploaded bytes, in quotes."),
        },
    }
}
_FILE: Responses = {
    200: {
        "description": "The file, byte for byte.",
        "content": {"application/octet-stream": _BYTES},
    }
}
_REPLACED: Responses = {
    200: {"model": GroundTruthRead, "description": "It replaced the graph that was attached."}
}


class DatasetCreateQuery(ReadOptions):
    """How to read an upload and what to call it."""

    name: str = Field(
        default="dataset",
        min_length=1,
        description="Name of the data set, its file name for instance; data only, never a path.",
    )


@router.post(
    "",
    operation_id="create_dataset",
    status_code=201,
    responses=_CREATED | problem_responses(*_UPLOAD_CODES, ProblemCode.QUOTA_REACHED),
    openapi_extra=_UPLOAD_BODY,
)
async def create_dataset(
    request: Request,
    response: Response,
    query: Annotated[DatasetCreateQuery, Query()],
    database: DatabaseDep,
    settings: SettingsDep,
    require_room: RequireRoomDep,
) -> DatasetRead:
    """Store a table; what cannot be read without guessing is refused, with column, row and cell."""
    _check_name(query.name, settings.max_name_length)
    read_request = _read_request(query, settings)
    async with uploads.receive(request, settings.max_body_bytes) as upload:
        stored = await lifecycle.in_reader_thread(
            partial(
                lifecycle.create,
                database,
                upload,
                query.name,
                read_request,
                require_room,
            )
        )
    response.headers["Location"] = address_of(f"/v1/datasets/{stored.record.id}")
    response.headers["ETag"] = etag_of(stored.original.sha256)
    return lifecycle.describe(stored)


@preview_router.post(
    "/v1/datasets:preview",
    operation_id="preview_dataset",
    responses=problem_responses(*_UPLOAD_CODES),
    openapi_extra=_UPLOAD_BODY,
)
async def preview_dataset(
    request: Request, query: Annotated[ReadOptions, Query()], settings: SettingsDep
) -> DatasetPreview:
    """Say what an upload would become; store nothing."""
    read_request = _read_request(query, settings)
    async with uploads.receive(request, settings.max_body_bytes) as upload:
        return await lifecycle.in_reader_thread(partial(lifecycle.preview, upload, read_request))


@router.get("", operation_id="list_datasets")
def list_datasets(
    database: DatabaseDep, limit: LimitQuery = 50, cursor: CursorQuery = None
) -> DatasetPage:
    """List data sets, newest first."""
    with database.snapshot() as session:
        # One more than asked for tells whether there is a next page.
        found = repository.newest(session, limit + 1, paging.place_of(cursor))
    page = found[:limit]
    last = page[-1].record if len(found) > limit else None
    return DatasetPage(
        items=[lifecycle.describe_item(stored) for stored in page],
        next_cursor=last and paging.cursor_at(last.created_at, last.id),
    )


@router.get(
    "/{dataset_id}",
    operation_id="get_dataset",
    response_model=DatasetRead,
    responses=problem_responses(ProblemCode.NOT_FOUND),
)
def get_dataset(dataset_id: DatasetId, request: Request, database: DatabaseDep) -> Response:
    """Show what was read from an upload, how, and what is remarkable about it."""
    with database.snapshot() as session:
        stored = lifecycle.existing(session, dataset_id)
    return json_response(request, lifecycle.describe(stored), {"Cache-Control": "no-cache"})


@router.get(
    "/{dataset_id}/content",
    operation_id="download_dataset",
    response_class=Response,
    responses=_FILE | problem_responses(ProblemCode.NOT_FOUND),
)
def download_dataset(dataset_id: DatasetId, request: Request, database: DatabaseDep) -> Response:
    """Download the bytes that were uploaded."""
    with database.repeatable_read() as session:
        stored = lifecycle.existing(session, dataset_id)
        headers = _content_headers(stored)
        if is_fresh(request, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return send_blob(session, database, stored.original, "application/octet-stream", headers)


@router.delete(
    "/{dataset_id}",
    operation_id="delete_dataset",
    status_code=204,
    response_class=Response,
    responses=problem_responses(ProblemCode.NOT_FOUND, ProblemCode.DATASET_IN_USE),
)
def delete_dataset(dataset_id: DatasetId, database: DatabaseDep) -> None:
    """Delete a data set that no job refers to, with its true graph."""
    with database.transaction() as session:
        lifecycle.remove(session, dataset_id)


@router.put(
    "/{dataset_id}/ground-truth",
    operation_id="put_ground_truth",
    status_code=201,
    responses=_REPLACED | problem_responses(ProblemCode.NOT_FOUND, *BODY_CODES),
)
def put_ground_truth(
    dataset_id: DatasetId, body: GroundTruthCreate, response: Response, database: DatabaseDep
) -> GroundTruthRead:
    """Attach the graph that is known to be true; jobs submitted from now on are scored by it."""
    with database.snapshot() as session:
        names = _names(lifecycle.existing(session, dataset_id))
    # A data set's names never change; judging a large graph must not keep other writers waiting.
    edges = canonical_edges(body, names)
    with database.transaction() as session:
        repository.lock(session, dataset_id)
        lifecycle.existing(session, dataset_id)
        truth, is_first = repository.put_ground_truth(session, dataset_id, edges)
    if not is_first:
        response.status_code = 200
    return _describe_truth(truth, len(names))


@router.get(
    "/{dataset_id}/ground-truth",
    operation_id="get_ground_truth",
    responses=problem_responses(ProblemCode.NOT_FOUND),
)
def get_ground_truth(dataset_id: DatasetId, database: DatabaseDep) -> GroundTruthRead:
    """Show the graph that is known to be true."""
    with database.snapshot() as session:
        stored = lifecycle.existing(session, dataset_id)
        truth = session.get(GroundTruthRecord, dataset_id) or _refuse_missing_truth()
    return _describe_truth(truth, stored.record.num_columns)


@router.delete(
    "/{dataset_id}/ground-truth",
    operation_id="delete_ground_truth",
    status_code=204,
    response_class=Response,
    responses=problem_responses(ProblemCode.NOT_FOUND),
)
def delete_ground_truth(dataset_id: DatasetId, database: DatabaseDep) -> None:
    """Detach the true graph; jobs keep the one they were submitted with."""
    with database.transaction() as session:
        lifecycle.existing(session, dataset_id)
        if not repository.remove_ground_truth(session, dataset_id):
            _refuse_missing_truth()


def _read_request(options: ReadOptions, settings: Settings) -> ReadRequest:
    return ReadRequest(
        options=ReadOptions.model_validate(options.model_dump(include={*ReadOptions.model_fields})),
        limits=ReadLimits.from_settings(settings),
        bounds=ReaderBounds.from_settings(settings),
    )


def _check_name(name: str, max_length: int) -> None:
    if len(name) > max_length:
        rule = f"may have {max_length} characters at most, this one has {len(name)}"
    elif not name.strip():
        rule = "must not be blank"
    elif "\0" in name:
        rule = "must not hold the character U+0000"
    else:
        return
    raise ProblemError(
        ProblemCode.VALIDATION_FAILED,
        f"The name of a data set {rule}.",
        errors=[ProblemItem(message=f"It {rule}.", parameter="name")],
    )


def _content_headers(stored: StoredDataset) -> dict[str, str]:
    record = stored.record
    return {
        "ETag": etag_of(stored.original.sha256),
        "Cache-Control": IMMUTABLE,
        "Content-Disposition": content_disposition(record.name, DatasetFormat(record.format)),
    }


def _names(stored: StoredDataset) -> list[str]:
    return [column.name for column in lifecycle.describe(stored).summary.columns]


def _describe_truth(truth: GroundTruthRecord, num_columns: int) -> GroundTruthRead:
    return GroundTruthRead(
        dataset_id=truth.dataset_id,
        created_at=as_datetime(truth.created_at),
        n_edges=len(truth.edges),
        n_pairs=num_columns * (num_columns - 1) // 2,
        edges=[TruthEdgeRead(source=source, target=target) for source, target in truth.edges],
    )


def _refuse_missing_truth() -> GroundTruthRecord:
    raise ProblemError(ProblemCode.NOT_FOUND, "No true graph is attached to this data set.")
