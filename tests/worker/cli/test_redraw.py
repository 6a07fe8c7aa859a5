from pathlib import Path

import httpx
import pytest

from worker.cli.client import Client
from worker.cli.exit_codes import ExitCode
from worker.cli.redraw import redraw


def test_an_indefinite_network_has_no_threshold_and_nothing_is_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    documents = {
        "/v1/jobs/job_1": {"spec": {"estimator": {"kind": "score-matching"}}},
        "/v1/jobs/job_1/result": {"diagnostics": {"is_positive_definite": False}},
        "/v1/jobs/job_1/result/graph": {"edges": [], "next_cursor": None},
    }
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, json=documents[request.url.path])
    )
    client = Client(httpx.Client(base_url="http://service", transport=transport))
    assert redraw(client, "job_1", 0.2, tmp_path / "r") is ExitCode.MISUSE
    assert "K is not positive definite" in " ".join(capfd.readouterr().err.split())
    assert not (tmp_path / "r").exists()
