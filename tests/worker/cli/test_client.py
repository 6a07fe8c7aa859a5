import sys
from collections.abc import Callable

import httpx
import pytest

from service.http.problems import ProblemCode, problem_document
from worker.cli.client import Client, ServiceProblemError, ServiceUnreachableError

Handler = Callable[[httpx.Request], httpx.Response]


def client_of(handler: Handler) -> Client:
    transport = httpx.MockTransport(handler)
    return Client(httpx.Client(base_url="http://service", transport=transport))


def test_a_problem_document_is_raised_with_its_places() -> None:
    problem = problem_document(ProblemCode.NOT_FOUND, "No job has this identifier.")

    def refuse(request: httpx.Request) -> httpx.Response:
        headers = {"Content-Type": "application/problem+json"}
        return httpx.Response(404, text=problem.model_dump_json(), headers=headers)

    with pytest.raises(ServiceProblemError, match="No job has this identifier") as caught:
        client_of(refuse).job("job_1")
    assert caught.value.problem == problem


def test_an_answer_of_something_else_is_not_taken_for_the_service() -> None:
    with pytest.raises(ServiceUnreachableError, match="is it the VNCE service"):
        client_of(lambda request: httpx.Response(502, text="<html>Bad gateway</html>")).job("job_1")


def test_an_address_that_is_no_url_is_named() -> None:
    with pytest.raises(ServiceUnreachableError, match="no URL"):
        Client.connect("http://host:port")


def test_a_lost_submission_is_repeated_under_the_same_key() -> None:
    keys = []

    def lose_the_first(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            raise httpx.ReadError("connection reset")
        return httpx.Response(202, json={"id": "job_1"})

    assert client_of(lose_the_first).submit({})["id"] == "job_1"
    assert len(keys) == 2
    assert keys[0] == keys[1]


def test_a_wait_outlasts_a_service_that_is_being_restarted() -> None:
    answers = iter(["running", "down", "succeeded"])

    def restart(request: httpx.Request) -> httpx.Response:
        state = next(answers)
        if state == "down":
            raise httpx.ConnectError("connection refused")
        return httpx.Response(200, json={"state": state})

    jobs = list(client_of(restart).poll("job_1", seconds=0))
    assert [job["state"] for job in jobs] == ["running", "succeeded"]


def test_options_that_were_not_chosen_are_not_sent() -> None:
    def echo(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"query": str(request.url.query, "ascii")})

    assert client_of(echo).jobs(state="queued", tag=None)["query"] == "state=queued"


def test_all_pairs_are_read_page_by_page() -> None:
    edge = {"source": "a", "target": "b", "precision": -1.0, "scaled_interaction": 0.5}
    edge |= {"partial_correlation": 0.5, "selected": True, "n_pairwise": 9, "inclusion": None}

    def page(request: httpx.Request) -> httpx.Response:
        start = int(request.url.params.get("cursor", 0))
        assert request.url.params["min_abs_weight"] == "0.2"
        rows = [edge | {"rank": start + 1, "target": f"b{start + 1}"}]
        following = str(start + 1) if start < 2 else None
        return httpx.Response(200, json={"edges": rows, "next_cursor": following})

    client = client_of(page)
    assert [edge.target for edge in client.edges("job_1", min_weight=0.2)] == ["b1", "b2", "b3"]
    assert len(client.edges("job_1", limit=1, min_weight=0.2)) == 1


def test_a_result_file_is_asked_for_by_its_name() -> None:
    def echo(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=request.url.raw_path)

    content = client_of(echo).result_file("job_1", "figures/network.svg")
    assert content == b"/v1/jobs/job_1/result/files/figures/network.svg"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "gopher://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_said_in_a_line(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if proxy.startswith("socks"):
        monkeypatch.setitem(sys.modules, "socksio", None)  # as where it is not installed
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ServiceUnreachableError, match="proxy that the environment names"):
        Client.connect("http://10.0.0.1:9")
