"""The alert rules and the dashboard speak of metrics that exist, and every alert is explained."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from service.db.database import Database
from service.jobs import leases
from service.monitoring import heartbeats
from service.monitoring.heartbeats import ProcessIdentity
from service.monitoring.records import ProcessKind

ROOT = Path(__file__).parents[3]
ALERTS = ROOT / "monitoring" / "alerts.yml"
DASHBOARD = ROOT / "monitoring" / "grafana-dashboard.json"
RUNBOOK = ROOT / "docs" / "runbook.md"
# Prometheus makes `up` and these labels itself when it scrapes.
MADE_BY_PROMETHEUS = {"job", "instance"}


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client."""
    return sqlite_url


@pytest.fixture
def told(
    client: TestClient, database: Database, add_waiting_job: Callable[..., str]
) -> dict[str, set[str]]:
    """Return the labels of every sample of a scrape after one job was fitted, by its name."""
    job_id = add_waiting_job()
    with database.transaction() as session:
        claim = leases.claim(session, job_id, lease_seconds=30)
        assert claim is not None
        leases.succeed(session, job_id, claim.token)
    client.get(f"/v1/jobs/{job_id}")
    # Last: after some seconds without a beat a process is no longer told of.
    with database.transaction() as session:
        for kind in ProcessKind:
            heartbeats.beat(session, ProcessIdentity(kind, kind, "host", 1, "1.0"), 1000, None)
    families = text_string_to_metric_families(client.get("/metrics").text)
    samples = itertools.chain.from_iterable(family.samples for family in families)
    return {sample.name: set(sample.labels) for sample in samples}


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return list(dashboard["panels"])


def expressions() -> list[str]:
    of_panels = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [rule["expr"] for rule in alerts()] + of_panels


def test_every_metric_and_label_of_an_expression_is_told(told: dict[str, set[str]]) -> None:
    for expression in expressions():
        selectors = re.findall(r"\b((?:vnce|process)_\w+)(?:\{([^}]*)\})?", expression)
        assert selectors or expression.startswith("up{"), expression
        for name, matchers in selectors:
            assert name in told
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
            assert labels <= told[name] | MADE_BY_PROMETHEUS, expression
        for names in re.findall(r"by \(([^)]*)\)", expression):
            grouped = {name.strip() for name in names.split(",")}
            assert grouped <= set().union(*(told[name] for name, _ in selectors)), expression


def test_every_alert_says_what_is_wrong_how_bad_it_is_and_where_to_read_on() -> None:
    headings = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names)
    for rule in alerts():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
        assert rule["alert"] in headings


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    titles = [panel["title"] for panel in panels()]
    assert len(set(titles)) == len(titles)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels())
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_prometheus_takes_rules_and_configuration() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip(
            "Prometheus' own check needs promtool, of Debian's package prometheus; names and "
            "labels are checked without it"
        )
    configuration = ALERTS.with_name("prometheus.yml")
    for arguments in (
        # The key's file is for whoever runs the service to make.
        ["check", "config", "--syntax-only", str(configuration)],
        ["check", "rules", str(ALERTS)],
        ["test", "rules", str(Path(__file__).with_name("alerts.test.yml"))],
    ):
        done = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
