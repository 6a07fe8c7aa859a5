"""Results and their parts; all of them are made by the worker, and no file ever changes."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from service.http.dependencies import DatabaseDep
from service.http.etag import IMMUTABLE, etag_of, json_response
from service.http.openapi_responses import UNCHANGED, Responses, problem_responses
from service.http.pagination import invalid_cursor
from service.http.problems import ProblemCode
from service.http.scoped_route import ScopedRoute
from service.jobs import result_access as access
from service.jobs.endpoints import JobId
from service.results import repository
from service.results.downloads import send_artefact
from service.results.formats import GraphFormat, MediaType, TableFormat, choose, media_type
from service.results.pages import GraphPage, ResultRead, describe_edge, describe_result
from service.results.repository import EdgeFilter
from service.results.schemas import (
    EdgeRuleRead,
    ImputationsRead,
    MatrixRead,
    PartialCorrelationsRead,
    RocRead,
)
from service.results.vocabulary import EdgeScore, Figure

router = APIRouter(prefix="/v1/jobs/{job_id}/result", tags=["results"], route_class=ScopedRoute)

_READ = UNCHANGED | problem_responses(*access.NO_RESULT)
_SCORED = UNCHANGED | problem_responses(*access.NO_RESULT, ProblemCode.GROUND_TRUTH_MISSING)


def _download(*media_types: str) -> Responses:
    """Return the declaration of a download as one of these types."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    # JSON last: a generated client goes by the first that it knows, and would parse a file's bytes.
    files = sorted(media_types, key=lambda media_type: media_type is MediaType.JSON)
    content = {
        200: {
            "description": "The file.",
            "content": dict.fromkeys(files, schema),
        }
    }
    return content | UNCHANGED | problem_responses(*access.NO_RESULT, ProblemCode.NOT_ACCEPTABLE)


_TABLE = _download(*(media_type(wanted) for wanted in TableFormat))
_GRAPH = _download(*(media_type(wanted) for wanted in GraphFormat))

TableFormatQuery = Annotated[
    TableFormat | None, Query(description="Format; left out: what `Accept` says, or CSV.")
]
GraphFormatQuery = Annotated[
    GraphFormat | None, Query(description="Format; left out: what `Accept` says, or JSON.")
]
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
    "/precision/content",
    operation_id="download_precision",
    response_class=Response,
    responses=_TABLE,
)
def download_precision(
    job_id: JobId, request: Request, database: DatabaseDep, format: TableFormatQuery = None
) -> Response:
    """Download K, the interaction matrix."""
    return _send_table(request, database, job_id, "precision", format)


@router.get(
    "/partial-correlations",
    operation_id="get_partial_correlations",
    response_model=PartialCorrelationsRead,
    responses=_READ,
)
def get_partial_correlations(job_id: JobId, request: Request, database: DatabaseDep) -> Response:
    """Return the matrix of partial correlations, 1 on its diagonal; null where there are none."""
    return send_artefact(request, database, job_id, "partial-correlations.json", as_file=False)


@router.get(
    "/partial-correlations/content",
    operation_id="download_partial_correlations",
    response_class=Response,
    responses=_TABLE,
)
def download_partial_correlations(
    job_id: JobId, request: Request, database: DatabaseDep, format: TableFormatQuery = None
) -> Response:
    """Download the matrix of partial correlations; no number where there are none."""
    return _send_table(request, database, job_id, "partial-correlations", format)


@router.get(
    "/imputations",
    operation_id="get_imputations",
    response_model=ImputationsRead,
    responses=_READ,
)
def get_imputations(job_id: JobId, request: Request, database: DatabaseDep) -> Response:
    """Return the completed table, observed cells unchanged, on the data's own scale."""
    return send_artefact(request, database, job_id, "imputations.json", as_file=False)


@router.get(
    "/imputations/content",
    operation_id="download_imputations",
    response_class=Response,
    responses=_TABLE,
)
def download_imputations(
    job_id: JobId, request: Request, database: DatabaseDep, format: TableFormatQuery = None
) -> Response:
    """Download the completed table."""
    return _send_table(request, database, job_id, "imputations", format)


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
    limit: EdgeLimit = 1_000,
    cursor: Annotated[
        str | None, Query(max_length=20, description="`next_cursor` of the page before.")
    ] = None,
) -> Response:
    """List pairs of variables, strongest first; every pair has its rank."""
    wanted = EdgeFilter(min_abs_weight=min_abs_weight, selected=selected)
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


@router.get(
    "/graph/content", operation_id="download_graph", response_class=Response, responses=_GRAPH
)
def download_graph(
    job_id: JobId, request: Request, database: DatabaseDep, format: GraphFormatQuery = None
) -> Response:
    """Download the graph: every variable a node, every pair an edge with its weight and sign."""
    chosen = format or choose(list(GraphFormat), request.headers.get("accept"))
    return send_artefact(request, database, job_id, f"graph.{chosen}", as_file=True)


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
    "/objective/content",
    operation_id="download_objective",
    response_class=Response,
    responses=_download(media_type(TableFormat.CSV)),
)
def download_objective(job_id: JobId, request: Request, database: DatabaseDep) -> Response:
    """Download the objective at every iteration."""
    return send_artefact(request, database, job_id, "objective.csv", as_file=True)


@router.get(
    "/figures/{name}.svg",
    operation_id="get_figure",
    response_class=Response,
    responses=_download(MediaType.SVG)
    | problem_responses(*access.NO_RESULT, ProblemCode.GROUND_TRUTH_MISSING),
)
def get_figure(
    job_id: JobId,
    name: Annotated[Figure, Path(description="Which picture.")],
    request: Request,
    database: DatabaseDep,
) -> Response:
    """Return a picture; `roc` needs a true graph."""
    needs_truth = name is Figure.ROC
    artefact = f"figures/{name}.svg"
    return send_artefact(
        request, database, job_id, artefact, as_file=False, needs_truth=needs_truth
    )


@router.get(
    "/files/{name:path}",
    operation_id="download_file",
    response_class=Response,
    responses=_download(*MediaType),
)
def download_file(
    job_id: JobId,
    name: Annotated[str, Path(max_length=100, description="A name out of the result's `files`.")],
    request: Request,
    database: DatabaseDep,
) -> Response:
    """Download any file of the result by its name."""
    return send_artefact(request, database, job_id, name, as_file=True)


def _send_table(
    request: Request, database: DatabaseDep, job_id: str, stem: str, wanted: TableFormat | None
) -> Response:
    chosen = wanted or choose(list(TableFormat), request.headers.get("accept"))
    return send_artefact(request, database, job_id, f"{stem}.{chosen}", as_file=True)


def _rank(cursor: str | None) -> int:
    """Return the rank of the last pair of the page before; 0 for the first page."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or int(cursor) >= 2**31:
        raise invalid_cursor()
    return int(cursor)
