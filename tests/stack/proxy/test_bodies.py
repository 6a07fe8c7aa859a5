"""Uploads come to the API whole, and those above the limit are answered by the API itself."""

import hashlib
import json
from collections.abc import Iterator
from http.client import HTTPResponse

import pytest

from tests.served import Served
from tests.stack.proxy.conftest import LIMITS

pytestmark = pytest.mark.integration

TABLE = b"a,b\n" + b"1.5,2.5\n" * 20_000
HEAD = b"POST /vnce/v1/datasets HTTP/1.1\r\nHost: here\r\n"


def in_pieces(body: bytes) -> Iterator[bytes]:
    """Yield a body in pieces, which is then sent without a length."""
    for start in range(0, len(body), 1000):
        yield body[start : start + 1000]


@pytest.mark.parametrize("has_length", [True, False])
def test_a_body_below_the_limit_comes_byte_for_byte(proxy: Served, has_length: bool) -> None:
    assert len(TABLE) < int(LIMITS["VNCE_MAX_BODY_BYTES"])
    client = proxy.client()
    answer = client.post("/vnce/v1/datasets", content=TABLE if has_length else in_pieces(TABLE))
    assert answer.status_code == 201, answer.text
    assert answer.headers["etag"] == f'"{hashlib.sha256(TABLE).hexdigest()}"'
    assert client.get(f"{answer.headers['location']}/content").content == TABLE


@pytest.mark.parametrize(
    ("path", "setting"),
    [
        ("/vnce/v1/datasets", "VNCE_MAX_BODY_BYTES"),
        ("/vnce/v1/datasets:preview", "VNCE_MAX_BODY_BYTES"),
        ("/vnce/v1/jobs", "VNCE_MAX_JSON_BYTES"),
    ],
)
@pytest.mark.parametrize("has_length", [True, False])
def test_a_body_above_the_limit_is_answered_as_the_api_answers_it(
    api: Served, proxy: Served, has_length: bool, path: str, setting: str
) -> None:
    body = b"x" * (int(LIMITS[setting]) + 1)
    headers = {"Content-Type": "application/json"}
    answers = [
        server.client().post(path, content=body if has_length else in_pieces(body), headers=headers)
        for server in (proxy, api)
    ]
    kept = [
        {name: text for name, text in answer.headers.items() if name not in OF_ONE_ANSWER}
        for answer in answers
    ]
    assert kept[0] == kept[1]
    documents = [answer.json() for answer in answers]
    assert documents[0].pop("request_id") == answers[0].headers["x-request-id"]
    documents[1].pop("request_id")
    assert documents[0] == documents[1]
    assert answers[0].headers["content-type"] == "application/problem+json"
    assert (documents[0]["code"], answers[0].status_code) == ("payload-too-large", 413)
    assert setting in documents[0]["detail"]


def test_a_wrong_path_is_told_before_a_body_is_too_large(proxy: Served) -> None:
    client = proxy.client()
    answer = client.post("/vnce/v1/nowhere", content=b"x" * 1_000_001)
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    # Nor is the next request taken for the body that the API has not had.
    assert client.post("/vnce/v1/datasets", content=TABLE).status_code == 201


OF_ONE_ANSWER = ("date", "server", "x-request-id", "connection")


@pytest.mark.parametrize(
    "announced",
    [
        b"Content-Length: 10000000\r\nExpect: 100-continue\r\n\r\n",
        b"Content-Length: 10000000\r\n\r\n" + b"x" * 1000,
        b"Transfer-Encoding: chunked\r\n\r\n40000\r\n" + b"x" * 0x40000,
    ],
    ids=["asked for first", "announced", "without a length"],
)
def test_the_rest_of_a_body_above_the_limit_is_not_waited_for(
    proxy: Served, announced: bytes
) -> None:
    # The connection is as it was: the client has neither sent the rest nor hung up.
    answer = HTTPResponse(proxy.connect(HEAD + announced))
    answer.begin()
    assert (answer.status, answer.headers["Connection"]) == (413, "close")
    assert json.load(answer)["code"] == "payload-too-large"
