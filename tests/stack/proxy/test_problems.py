"""What the proxy itself answers is a problem document like any of the API's."""

import shutil
from http.client import HTTPResponse
from pathlib import Path

import pytest

from service.http.problems import KINDS, MEDIA_TYPE, Problem, ProblemCode, problem_document
from service.http.security_headers import HEADERS
from tests.served import Served
from tests.stack.proxy.conftest import Proxy, Upstream

pytestmark = pytest.mark.integration

HOST = b"Host: here\r\n"
LENGTHS = (b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n")


def assert_is_problem(served: Served, sent: bytes, code: ProblemCode) -> None:
    answer = HTTPResponse(served.connect(sent))
    answer.begin()
    assert answer.status == KINDS[code].status
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert answer.headers["Server"] == "nginx"  # and not of which release
    problem = Problem.model_validate_json(answer.read())
    assert problem == problem_document(code, problem.detail, request_id=problem.request_id)
    assert answer.headers.get_all("X-Request-ID") == [problem.request_id]
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert (answer.headers["Retry-After"] is not None) == (answer.status in (429, 503))


@pytest.mark.parametrize(
    "sent",
    [
        b"good morning\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n\r\n",
        b"GET /livez HTTP/3.0\r\n\r\n",
        b"TRACE /livez HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /livez HTTP/1.1\r\n" + HOST + b"X-Long: " + b"a" * 100_000 + b"\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\n" + HOST + b"".join(LENGTHS) + b"\r\n0\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\n" + HOST + b"".join(LENGTHS[::-1]) + b"\r\n0\r\n\r\n",
    ],
    ids=lambda sent: sent[:40].decode().split("\r\n")[0],
)
def test_what_is_no_request_is_refused_and_the_api_never_hears_of_it(
    start_proxy: Proxy, upstream: Upstream, tmp_path: Path, sent: bytes
) -> None:
    with start_proxy(tmp_path / "proxy", upstream.port) as proxy:
        assert_is_problem(proxy, sent, ProblemCode.INVALID_REQUEST)
    assert not upstream.has_been_asked()


def test_an_api_that_is_away_is_unavailable(
    start_proxy: Proxy, upstream: Upstream, tmp_path: Path
) -> None:
    ask = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
    with start_proxy(tmp_path / "proxy", upstream.port) as proxy:
        upstream.listening.close()
        assert_is_problem(proxy, ask, ProblemCode.UNAVAILABLE)


def test_an_upload_for_which_there_is_no_room_is_unavailable(
    start_proxy: Proxy, upstream: Upstream, tmp_path: Path
) -> None:
    with start_proxy(tmp_path / "proxy", upstream.port) as proxy:
        shutil.rmtree(proxy.folder / "bodies")
        head = b"POST /v1/datasets HTTP/1.1\r\n" + HOST + b"Content-Length: 100000\r\n\r\n"
        assert_is_problem(proxy, head + b"x" * 100_000, ProblemCode.UNAVAILABLE)
    assert not upstream.has_been_asked()


def test_other_limits_are_problems_too(
    start_proxy: Proxy, upstream: Upstream, tmp_path: Path
) -> None:
    ask = b"GET /vnce/livez HTTP/1.1\r\n" + HOST + b"\r\n"
    own = {"VNCE_ROOT_PATH": "/vnce", "VNCE_MAX_CONNECTIONS_PER_CLIENT": "1"}
    with start_proxy(tmp_path / "proxy", upstream.port, **own) as proxy:
        assert_is_problem(proxy, ask.replace(b"/vnce", b""), ProblemCode.NOT_FOUND)
        proxy.connect(ask)
        upstream.take()
        assert_is_problem(proxy, ask, ProblemCode.TOO_MANY_REQUESTS)
