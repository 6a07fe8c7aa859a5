"""Requests made from the specification, one by one and in chains, are answered as it says.

A longer run against a service that also does the jobs, `vnce serve --require-keys`, with a key of
all scopes; a revoked key stays in the list, and chains take the key for one of their own making:
`schemathesis run http://127.0.0.1:8000/openapi.json -H "Authorization: Bearer $KEY"
--exclude-operation-id follow_job --exclude-checks
positive_data_acceptance,ensure_resource_availability,use_after_free,ignored_auth`.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import SecretStr

from service.app import create_app
from service.db import schema as migrate
from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.http.scopes import Scope
from service.keys import lifecycle
from service.settings import MIN_HASH_KEY_LENGTH, Authentication, Settings

pytestmark = pytest.mark.slow

# Tables that can be read, so that chains of requests get beyond the upload.
ROWS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=3, max_size=9)
TABLES = ROWS.map(lambda rows: "a,b\n" + "".join(f"{a},{b}\n" for a, b in rows)).map(str.encode)
schemathesis.openapi.media_type("application/octet-stream", TABLES)
# What fits the schema may still be refused, for instance options that the file does not fit; and a
# new data set has no true graph, a new job no result.
NOT_PROMISED = ("positive_data_acceptance", "ensure_resource_availability")
CONFIG = {
    # What it learns from answers would make a chain depend on those before it.
    "phases": {
        "stateful": {"inference": {"algorithms": []}, "link-calibration": False},
        "fuzzing": {
            "extra-data-sources": {"responses": False},
            "error-feedback": {"enabled": False},
        },
    },
}
# What an answer's identifier is good for: by operation and status the field, the parameter that it
# becomes, and the operations that take that. The specification leaves such links out.
LINKS = {
    ("create_dataset", "201", "id", "dataset_id"): (
        "get_dataset",
        "download_dataset",
        "put_ground_truth",
        "delete_dataset",
    ),
    ("put_ground_truth", "201", "dataset_id", "dataset_id"): (
        "get_ground_truth",
        "delete_ground_truth",
    ),
    ("create_job", "202", "id", "job_id"): ("get_job", "cancel_job", "delete_job", "get_result"),
}
ESTIMATION = {"kind": "estimation", "dataset_id": "$response.body#/id"}
HASH_KEY = "k" * MIN_HASH_KEY_LENGTH
FEW = hypothesis_settings(
    max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


OPERATIONS = sorted(
    operation["operationId"]
    for path in create_app(Settings(database_url="sqlite://", authentication=Authentication.NONE))
    .openapi()["paths"]
    .values()
    for operation in path.values()
    # Streams until the job ends, and here none runs.
    if operation["operationId"] != "follow_job"
)


def bound_to_an_app(folder: Path) -> schemathesis.BaseSchema:
    """Return the specification, bound to an app on a database of its own, with a key for all."""
    settings = Settings(
        database_url=f"sqlite:///{folder}/vnce.db",
        broker_url="redis://127.0.0.1:1/0",
        key_secret=SecretStr(HASH_KEY),
        requests_per_minute=1_000_000,
    )
    migrate.upgrade(settings.database_url)
    database = Database(settings.database_url)
    with database.of(DEFAULT_TENANT).transaction() as session:
        key = lifecycle.create(session, HASH_KEY, name="tests", scopes=list(Scope), expires_at=None)
    database.dispose()
    config = CONFIG | {
        # As a header alone it would now and then be taken for one of Schemathesis' own making.
        "auth": {"openapi": {"ApiKey": {"bearer": key.token}}},
        "checks": {name: {"enabled": False} for name in NOT_PROMISED},
    }
    app = create_app(settings)
    add_links(app.openapi())  # the app answers with this very object
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", app, config=schemathesis.Config.from_dict(config)
    )
    return schema.exclude(operation_id="follow_job")


def add_links(document: dict[str, Any]) -> None:
    operations = {
        operation["operationId"]: operation
        for path in document["paths"].values()
        for operation in path.values()
    }
    for (source, status, field, parameter), targets in LINKS.items():
        operations[source]["responses"][status]["links"] = {
            target: {
                "operationId": target,
                "parameters": {parameter: f"$response.body#/{field}"},
            }
            for target in targets
        }
    links = operations["create_dataset"]["responses"]["201"]["links"]
    links["create_job"] = {"operationId": "create_job", "requestBody": ESTIMATION}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> schemathesis.BaseSchema:
    return bound_to_an_app(tmp_path_factory.mktemp("schemathesis"))


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_requests_made_from_the_specification_are_answered_as_it_says(
    api: schemathesis.BaseSchema, operation_id: str
) -> None:
    operation = api.find_operation_by_id(operation_id)
    cases = [operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode]

    @FEW
    @given(case=st.one_of(cases))
    def answered(case: schemathesis.Case) -> None:
        case.call_and_validate()

    answered()


def test_chains_of_requests_are_answered_as_the_specification_says(tmp_path: Path) -> None:
    # One of its own: it remembers what it has seen, and chains must not depend on that.
    api = bound_to_an_app(tmp_path)
    answers: Counter[tuple[str, int]] = Counter()

    class Chains(api.as_state_machine()):
        """Sends mostly what is accepted: chains end where something is refused."""

        def before_call(self, case: Any) -> None:
            if operation_of(case) == "create_dataset":
                case.query = {}
            if operation_of(case) == "create_job":
                # A key that an earlier chain has used would make this one go another way.
                case.headers.pop("Idempotency-Key", None)
                if isinstance(case.body, dict):
                    case.body = {k: v for k, v in case.body.items() if k in ("kind", "dataset_id")}

        def after_call(self, response: Any, case: Any) -> None:
            super().after_call(response, case)
            answers[operation_of(case), response.status_code] += 1

    Chains.run(settings=hypothesis_settings(FEW, max_examples=30, stateful_step_count=12))
    # Without these the chains were no chains.
    assert {("create_dataset", 201), ("get_dataset", 200), ("create_job", 202)} <= answers.keys()


def operation_of(case: schemathesis.Case) -> str:
    return str(case.operation.definition.raw["operationId"])
