"""Results and their parts; all of them are made by the worker, and no file ever changes."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse

from service.http.dependencies import DatabaseDep
from service.http.etag import IMMUTABLE, etag_of, json_response
from service.http.openapi_responses import Responses, problem_responses
from service.http.pagination import invalid_cursor
from service.http.problems import ProblemCode
from service.http.scoped_route import ScopedRoute
from service.jobs import result_access as access
from service.jobs.endpoints import JobId
from service.results import repository
from service.results.downloads import send_artefact
from service.results.file_schemas import MatrixRead, RocRead
from service.results.pages import GraphPage, ResultRead, describe_edge, describe_result
from service.results.repository import EdgeFilter
from service.results.schemas import EdgeRuleRead
from service.results.vocabulary import EdgeScore, Verdict

router = APIRouter(prefix="/v1/jobs/{job_id}/result", tags=["results"], route_class=ScopedRoute)

_READ = problem_responses(*access.NO_RESULT)
_SCORED = problem_responses(*access.NO_RESULT, ProblemCode.GROUND_TRUTH_MISSING)


_FILE: Responses = {
    200: {
        "description": "The file, of the type that the result's `files` names.",
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_PAGE: Responses = {200: {"description": "The page, which needs no other file."}}
EdgeLimit = Annotated[int, Query(ge=1, le=10_000, description="Most pairs of a page.")]


@router.get("", operation_id="get_result", response_model=ResultRead, responses=_READ)
def get_result(job_id: JobId, request: Request, database: DatabaseDep) -> Response:
    """Return the result's document: what came out, warnings, how it was made, its files."""
    with database.repeatable_read() as session:
        job, result = access.result_of(session, job_id)
        document = describe_result(job, result, repository.files(session, job_id))
    # Asked for again at each use, which costs a 304: a new release may describe it in more fields.
    headers = {"Cache-Control": "private, no-cache"}
    return json_response(request, document, headers, etag_of(result.sha256))


@router.get("/precision", operation_id="get_precision", response_model=MatrixRead, responses=_READ)
def get_precision(job_id: JobId, request: Request, database: DatabaseDep) -> Response:
    """Return K, the interaction matrix."""
    return send_artefact(request, database, job_id, "precision.json", as_file=False)


@router.get(
    "/report",
    operation_id="get_report",
    response_class=HTMLResponse,
    responses=_PAGE | _READ,
)
def get_report(job_id: JobId, request: Request, database: DatabaseDep) -> Response:
    """Show the report, the file `report.html`, as a page.

    Networks, mixtures, bootstraps, comparisons and differences have one.
    """
    return send_artefact(request, database, job_id, "report.html", as_file=False)


@router.get("/graph", operation_id="list_edges", response_model=GraphPage, responses=_READ)
def list_edges(
    job_id: JobId,
    request: Request,
    database: DatabaseDep,
    min_abs_weight: Annotated[
        float,
        Query(ge=0, le=1, description="Only pairs whose |scaled interaction| is at least this."),
    ] = 0.0,
    selected: Annotated[
        bool | None, Query(description="Only pairs that meet the edge rule, or do not.")
    ] = None,
    verdict: Annotated[
        Verdict | None, Query(description="Only pairs of which the table says this.")
    ] = None,
    limit: EdgeLimit = 1_000,
    cursor: Annotated[
        str | None, Query(max_length=20, description="`next_cursor` of the page before.")
    ] = None,
) -> Response:
    """List pairs of variables, strongest first; every pair has its rank."""
    wanted = EdgeFilter(min_abs_weight, selected, verdict)
    with database.repeatable_read() as session:
        access.estimation_of(session, job_id)
        head = repository.graph_head(session, job_id)
        # One more than asked for tells whether there is a next page.
        found = repository.strongest_edges(session, job_id, wanted, limit + 1, _rank(cursor))
    page = GraphPage(
        names=head.names,
        edge_rule=EdgeRuleRead.model_validate(head.edge_rule),
        edges=[
            describe_edge(edge, is_positive_definite=head.is_positive_definite)
            for edge in found[:limit]
        ],
        next_cursor=str(found[limit - 1].rank) if len(found) > limit else None,
    )
    return json_response(request, page, {"Cache-Control": IMMUTABLE})


@router.get("/roc", operation_id="get_roc", response_model=RocRead, responses=_SCORED)
def get_roc(
    job_id: JobId,
    request: Request,
    database: DatabaseDep,
    score: Annotated[
        EdgeScore, Query(description="What pairs are ranked by.")
    ] = EdgeScore.ABS_PRECISION,
) -> Response:
    """Return the ROC curve of the ranked pairs against the true graph."""
    name = f"roc/{score}.json"
    return send_artefact(request, database, job_id, name, as_file=False, needs_truth=True)


@router.get(
    "/files/{name:path}",
    operation_id="download_file",
    response_class=Response,
    responses=_FILE | _READ,
)
def download_file(
    job_id: JobId,
    name: Annotated[
        str,
        Path(
            max_length=100,
            description="A name out of the result's `files`, such as `figures/network.svg`; "
            "without its ending where `format` says that.",
        ),
    ],
    request: Request,
    database: DatabaseDep,
    format: Annotated[
        str | None,
        Query(
            pattern="^[a-z0-9]{1,10}$",
            description="The name's ending: `precision` as `csv` is `precision.csv`.",
        ),
    ] = None,
) -> Response:
    """Download a file of the result: a matrix, a table, the graph, a picture."""
    wanted = name if format is None else f"{name}.{format}"
    return send_artefact(request, database, job_id, wanted, as_file=True)


def _rank(cursor: str | None) -> int:
    """Return the rank of the last pair of the page before; 0 for the first page."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or int(cursor) >= 2**31:
        raise invalid_cursor()
    return int(cursor)
