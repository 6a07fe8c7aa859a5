"""Results over HTTP: formats, names, refusals. What a database may do is in `test_reading`."""

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.db.database import Database
from service.http.problems import ProblemCode, ProblemItem, problem_document
from service.jobs import leases
from service.settings import Settings
from tests.result_files import NETWORK_FILES

AddJob = Callable[..., str]
# Every address below a result, with the artefact behind it.
FILES = {"/precision": "precision.json", "/files/graph?format=cx2": "graph.cx2"} | {
    f"/files/{name}": name for name in sorted(NETWORK_FILES)
}
PARTS = ["", "/graph", *FILES]


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return a database of the quicker kind: nothing here depends on it."""
    return sqlite_url


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "/vnce"])
@pytest.mark.parametrize("has_truth", [False, True])
def test_every_link_of_a_result_leads_somewhere(
    settings: Settings, job_id: str, scored_job_id: str, has_truth: bool, prefix: str
) -> None:
    client = TestClient(create_app(settings.model_copy(update={"root_path": prefix})))
    chosen = scored_job_id if has_truth else job_id
    result = client.get(f"{prefix}/v1/jobs/{chosen}/result").json()
    links = result["links"]
    assert len(links["roc"]) == (4 if has_truth else 0)
    files = [file["address"] for file in result["files"]]
    flat = [*links.pop("roc"), *links.values(), *files]
    assert all(link.startswith(f"{prefix}/v1/jobs/{chosen}") for link in flat)
    assert {client.get(link).status_code for link in flat} == {200}


def test_artefacts_are_sent_byte_for_byte(client: TestClient, job_id: str) -> None:
    answers = {part: client.get(f"/v1/jobs/{job_id}/result{part}") for part in FILES}
    assert {part: answer.text for part, answer in answers.items()} == FILES
    lengths = {part: int(answer.headers["content-length"]) for part, answer in answers.items()}
    assert lengths == {part: len(artefact) for part, artefact in FILES.items()}


@pytest.mark.parametrize("parts", [PARTS[:2], PARTS[2:]], ids=["documents", "artefacts"])
def test_part_that_the_client_has_is_not_sent_again(
    client: TestClient, job_id: str, parts: list[str]
) -> None:
    for part in parts:
        address = f"/v1/jobs/{job_id}/result{part}"
        first = client.get(address)
        # A new release may give the document more fields, and nothing else.
        assert ("immutable" in first.headers["cache-control"]) == (part != "")
        again = client.get(address, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        other = client.get(address, headers={"If-None-Match": '"other"'})
        assert other.content == first.content


@pytest.mark.parametrize("parts", [PARTS[:2], PARTS[2:]], ids=["documents", "artefacts"])
def test_head_answers_like_get_without_the_body(
    client: TestClient, job_id: str, parts: list[str]
) -> None:
    for part in parts:
        address = f"/v1/jobs/{job_id}/result{part}"
        got, head = client.get(address), client.head(address)
        assert (head.status_code, head.content) == (200, b"")
        for name in ("etag", "content-type", "content-length"):
            assert head.headers[name] == got.headers[name]


def test_download_is_named_after_job_and_artefact(client: TestClient, job_id: str) -> None:
    answer = client.get(f"/v1/jobs/{job_id}/result/files/precision?format=csv")
    name = f"{job_id}-precision.csv"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'


def test_picture_may_not_run_anything(client: TestClient, job_id: str) -> None:
    headers = client.get(f"/v1/jobs/{job_id}/result/files/figures/network.svg").headers
    assert headers["content-type"] == "image/svg+xml"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_the_report_is_shown_as_a_page_that_runs_nothing(client: TestClient, job_id: str) -> None:
    shown = client.get(f"/v1/jobs/{job_id}/result/report")
    assert shown.content == client.get(f"/v1/jobs/{job_id}/result/files/report.html").content
    assert shown.headers["content-type"].startswith("text/html")
    assert "content-disposition" not in shown.headers
    policy = set(shown.headers["content-security-policy"].split("; "))
    assert {"default-src 'none'", "img-src data:", "sandbox"} <= policy


@pytest.mark.parametrize(
    "part", ["precision", "precision.xlsx", "precision?format=xlsx", "precision.csv?format=csv"]
)
def test_a_file_that_the_result_has_not_is_not_found(
    client: TestClient, job_id: str, part: str
) -> None:
    answer = client.get(f"/v1/jobs/{job_id}/result/files/{part}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert "`files`" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("part", "parameter"),
    [
        ("/files/precision?format=../x", "format"),
        ("/graph?min_abs_weight=2", "min_abs_weight"),
        ("/graph?min_abs_weight=nan", "min_abs_weight"),
        ("/graph?verdict=maybe", "verdict"),
        ("/graph?limit=0", "limit"),
        ("/graph?cursor=-1", "cursor"),
        ("/graph?cursor=99999999999999999999", "cursor"),
        ("/roc?score=weight", "score"),
    ],
)
def test_wrong_parameter_is_named(
    client: TestClient, job_id: str, part: str, parameter: str
) -> None:
    answer = client.get(f"/v1/jobs/{job_id}/result{part}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"] == parameter


@pytest.mark.parametrize(
    ("query", "ranks"),
    [
        ("min_abs_weight=0.3", [1, 2, 3]),
        ("min_abs_weight=0.35", [1, 2]),
        ("selected=true", [1, 2, 3]),
        ("selected=false&min_abs_weight=0.01", [4, 5]),
        ("verdict=absent", [4, 5]),
        ("verdict=undecided", [6]),
        ("min_abs_weight=1", []),
    ],
)
def test_edges_are_filtered(client: TestClient, job_id: str, query: str, ranks: list[int]) -> None:
    page = client.get(f"/v1/jobs/{job_id}/result/graph?{query}").json()
    assert [edge["rank"] for edge in page["edges"]] == ranks


def test_pairs_have_partial_correlations_where_k_is_positive_definite(
    client: TestClient, job_id: str, indefinite_job_id: str
) -> None:
    definite, indefinite = (
        client.get(f"/v1/jobs/{job}/result/graph").json()["edges"]
        for job in (job_id, indefinite_job_id)
    )
    sizes = [edge["scaled_interaction"] for edge in definite]
    assert [edge["scaled_interaction"] for edge in indefinite] == sizes
    assert [edge["partial_correlation"] for edge in definite] == sizes
    assert {edge["partial_correlation"] for edge in indefinite} == {None}


@pytest.mark.parametrize("part", ["/roc", "/roc?score=precision"])
def test_without_a_true_graph_nothing_is_scored(client: TestClient, job_id: str, part: str) -> None:
    answer = client.get(f"/v1/jobs/{job_id}/result{part}")
    assert answer.status_code == 409
    assert answer.json()["code"] == "ground-truth-missing"


def test_roc_is_that_of_the_score(client: TestClient, scored_job_id: str) -> None:
    result = f"/v1/jobs/{scored_job_id}/result"
    assert client.get(f"{result}/roc").text == "roc/abs_precision.json"
    assert client.get(f"{result}/roc?score=precision").text == "roc/precision.json"
    assert client.get(f"{result}/files/figures/roc.svg").text == "figures/roc.svg"


def test_waiting_job_has_no_result_yet(client: TestClient, add_job: AddJob) -> None:
    job = add_job()
    answers = [client.get(f"/v1/jobs/{job}/result{part}") for part in PARTS]
    assert {answer.status_code for answer in answers} == {409}
    assert {answer.json()["code"] for answer in answers} == {"job-not-finished"}
    assert int(answers[0].headers["retry-after"]) >= 1


def test_cancelled_job_has_no_result(client: TestClient, add_job: AddJob) -> None:
    job = add_job()
    client.put(f"/v1/jobs/{job}/cancellation")
    answers = [client.get(f"/v1/jobs/{job}/result{part}") for part in PARTS]
    assert {answer.status_code for answer in answers} == {409}
    assert {answer.json()["code"] for answer in answers} == {"job-cancelled"}


def test_result_of_a_failed_job_says_why(
    client: TestClient, database: Database, add_job: AddJob
) -> None:
    job = add_job()
    item = ProblemItem(message="It is the sum of others.", column="c")
    problem = problem_document(ProblemCode.INCOMPATIBLE_MODEL, "Leave c out.", errors=[item])
    with database.transaction() as session:
        taken = leases.claim(session, job, 60)
        assert taken is not None
        leases.fail(session, job, taken.token, problem)
    answer = client.get(f"/v1/jobs/{job}/result")
    assert answer.status_code == 409
    assert answer.json()["code"] == "job-failed"
    assert "Leave c out." in answer.json()["detail"]
    assert answer.json()["errors"] == [item.model_dump()]
