"""Below a prefix and behind TLS the service's addresses lead to it, and it knows who asks."""

import json
import re
import ssl
import subprocess
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from tests.embedded_postgres import free_port
from tests.served import Served
from tests.stack.proxy.conftest import LIMITS, Proxy, Upstream
from tests.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.integration

JOB = {"kind": "simulation", "graph": "ring", "n_variables": 3, "n_rows": 10, "seed": 1}


def test_location_and_links_lead_to_the_service(proxy: Served) -> None:
    client = proxy.client()
    for _ in range(2):
        submitted = client.post("/vnce/v1/jobs", json=JOB)
    assert submitted.status_code == 202
    assert submitted.headers["location"].startswith("/vnce/v1/jobs/job_")
    job = client.get(submitted.headers["location"]).json()
    assert client.get(job["links"]["job"]).json()["id"] == job["id"]
    first = client.get("/vnce/v1/jobs?limit=1").json()
    assert first["items"][0]["links"] == job["links"]
    query = {"limit": "1", "cursor": first["next_cursor"]}
    (second,) = client.get("/vnce/v1/jobs", params=query).json()["items"]
    assert client.put(second["links"]["cancellation"]).json()["state"] == "cancelled"


def test_the_documentation_and_the_specification_are_below_the_prefix(proxy: Served) -> None:
    client = proxy.client()
    page = client.get("/vnce/docs").text
    for address in re.findall(r"(?:href|src)=\"([^\"]+)\"", page):
        assert address.startswith("/vnce/docs-files/")
        assert client.get(address).status_code == 200
    (specification,) = re.findall(r"url: '([^']+)'", page)
    document = client.get(specification).json()
    assert document["servers"] == [{"url": "/vnce"}]
    assert client.get(document["servers"][0]["url"] + "/v1/jobs").status_code == 200


@pytest.mark.parametrize("path", ["/", "/v1/jobs", "/vnce", "/vncex/v1/jobs", "/-/unavailable"])
def test_nothing_is_beside_the_prefix(proxy: Served, path: str) -> None:
    answer = proxy.client().get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_a_path_comes_to_the_api_as_it_was_asked_for(
    start_proxy: Proxy, upstream: Upstream, tmp_path: Path
) -> None:
    path = b"/vnce/v1/datasets/a%2Fb%20c//d?name=%C3%A4%26&x=../y"
    with start_proxy(tmp_path, upstream.port, VNCE_ROOT_PATH="/vnce") as proxy:
        proxy.connect(b"GET " + path + b" HTTP/1.1\r\nHost: here:80\r\n\r\n")
        head = upstream.take().recv(2**16)
        assert head.startswith(b"GET " + path + b" HTTP/1.1\r\n")
        assert b"\r\nHost: here:80\r\n" in head


def test_who_asks_is_logged_and_not_believed_to_be_another(api: Served, proxy: Served) -> None:
    answer = proxy.client().get("/vnce/v1/jobs", headers={"X-Forwarded-For": "192.0.2.7"})

    def lines_of(file: Path) -> list[dict[str, object]]:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        wanted = {"request_id": answer.headers["x-request-id"], "event": "request answered"}
        return [line for line in lines if wanted.items() <= line.items()]

    for file in (api.folder / "api.log", proxy.folder / "access.log"):
        wait_for(lambda file=file: lines_of(file), f"a line in {file}")
        (line,) = lines_of(file)
        assert line["client"] == "127.0.0.1"
        assert line["method"] == "GET"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a certificate for 127.0.0.1 that signs itself."""
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-keyout privkey.pem -out fullchain.pem -subj /CN=here -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(command.split(), cwd=folder, capture_output=True, check=True)
    return folder


def test_behind_tls_addresses_stay_behind_it(
    api: Served, start_proxy: Proxy, certificate: Path, tmp_path: Path
) -> None:
    port = free_port()
    own = {
        "VNCE_ROOT_PATH": "/vnce",
        "VNCE_TLS_PORT": f"127.0.0.1:{port}",
        "VNCE_TLS_FOLDER": str(certificate),
    }
    trusted = ssl.create_default_context(cafile=certificate / "fullchain.pem")
    here = f"https://127.0.0.1:{port}"
    with (
        start_proxy(tmp_path / "proxy", api.port, "tls.conf", **own, **LIMITS) as proxy,
        httpx.Client(verify=trusted, timeout=PATIENCE_SECONDS, trust_env=False) as client,
    ):
        submitted = client.post(f"{here}/vnce/v1/jobs", json=JOB)
        address = urljoin(str(submitted.url), submitted.headers["location"])
        assert address.startswith(f"{here}/vnce/v1/jobs/job_")
        assert client.get(address).json()["links"]["job"] == submitted.headers["location"]
        # Where TLS is spoken nothing else is; the other port stays as it is.
        assert proxy.client().get("/vnce/livez").status_code == 200
        plain = httpx.get(f"http://127.0.0.1:{port}/vnce/livez", trust_env=False)
        assert (plain.status_code, plain.json()["code"]) == (400, "invalid-request")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_api_is_told_the_scheme_whatever_a_client_says(
    start_proxy: Proxy, upstream: Upstream, certificate: Path, tmp_path: Path, scheme: str
) -> None:
    port = free_port()
    own = {"VNCE_TLS_PORT": f"127.0.0.1:{port}", "VNCE_TLS_FOLDER": str(certificate)}
    with start_proxy(tmp_path / "proxy", upstream.port, "tls.conf", **own) as proxy:
        lie = (
            b"GET / HTTP/1.1\r\nHost: here\r\nX-Forwarded-Proto: ftp\r\nX-Forwarded-For: x\r\n\r\n"
        )
        context = ssl.create_default_context(cafile=certificate / "fullchain.pem")
        with ExitStack() as opened:
            connection = proxy.connect(port=port if scheme == "https" else None)
            if scheme == "https":
                connection = opened.enter_context(
                    context.wrap_socket(connection, server_hostname="127.0.0.1")
                )
            connection.sendall(lie)
            head = upstream.take().recv(2**16).lower()
        assert b"\r\nx-forwarded-proto: " + scheme.encode() + b"\r\n" in head
        assert head.count(b"x-forwarded-proto") == 1
        assert b"\r\nx-forwarded-for: 127.0.0.1\r\n" in head
