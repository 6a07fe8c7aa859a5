"""What docker-compose.yml and the Dockerfiles promise, read from their text."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from worker.settings import WorkerSettings

ROOT = Path(__file__).parents[2]
OURS = {"api", "worker", "dispatcher", "migrate"}
# Services of images that others make.
STORES = {"postgres", "redis"}
OTHERS = STORES | {"proxy"}
UNITS = {"m": 2**20, "g": 2**30}
# What the file itself says, because other lines of it say the same.
FIXED = {
    "VNCE_DATABASE_URL",  # the service `postgres`
    "VNCE_BROKER_URL",  # the service `redis`
    "VNCE_TRUSTED_PROXIES",  # the service `proxy`
}


@pytest.fixture
def described(compose: Callable[[dict[str, str]], Any], given: dict[str, str]) -> dict[str, Any]:
    described: dict[str, Any] = compose(given)
    return described


@pytest.fixture
def services(described: dict[str, Any]) -> dict[str, Any]:
    services: dict[str, Any] = described["services"]
    return services


def test_the_stack_has_every_part(services: dict[str, Any]) -> None:
    assert set(services) == OURS | OTHERS


@pytest.mark.parametrize("name", ["POSTGRES_PASSWORD", "VNCE_KEY_SECRET"])
def test_no_secret_has_a_default(
    name: str, compose: Callable[[dict[str, str]], Any], given: dict[str, str]
) -> None:
    others = {key: value for key, value in given.items() if key != name}
    with pytest.raises(KeyError, match=f"{name}: set it"):
        compose(others)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("api", Settings),
        ("migrate", Settings),
        ("worker", WorkerSettings),
        ("dispatcher", WorkerSettings),
    ],
)
def test_every_setting_reaches_the_processes_that_know_it(
    name: str,
    known: type[Settings],
    compose: Callable[[dict[str, str]], Any],
    given: dict[str, str],
) -> None:
    variables = {f"VNCE_{field.upper()}" for field in known.model_fields}
    chosen = {variable: f"the operator's {variable}" for variable in variables}
    environment = compose(given | chosen)["services"][name]["environment"]
    passed = {variable for variable, text in chosen.items() if environment.get(variable) == text}
    assert passed == variables - FIXED
    assert environment.keys() >= FIXED & variables


def test_what_no_operator_has_set_has_the_default_of_the_code(services: dict[str, Any]) -> None:
    chosen = {name for name in services["api"]["environment"] if name.startswith("VNCE_")}
    assert chosen == {*FIXED, "VNCE_KEY_SECRET"}
    for setting in ("root_path", "max_body_bytes", "max_json_bytes"):
        default = Settings.model_fields[setting].default
        assert services["proxy"]["environment"][f"VNCE_{setting.upper()}"] == str(default)


def test_every_container_is_unprivileged_read_only_and_bounded(
    services: dict[str, Any], dockerfiles: dict[str, Any]
) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["pids_limit"], name
        assert service["mem_limit"], name
        assert all(":size=" in path for path in service["tmpfs"]), name
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}, name
    for name, user in {"proxy": "nginx", "postgres": "postgres", "redis": "redis"}.items():
        assert services[name]["user"] == user
        assert re.fullmatch(r"[a-z]+:\d[\w.-]+", services[name]["image"])
    for name in OURS:
        assert dockerfiles[services[name]["build"]["dockerfile"]].user == 10001


def test_what_stays_up_is_checked_and_what_it_needs_is_waited_for(services: dict[str, Any]) -> None:
    assert all("healthcheck" in services[name] for name in (OURS | OTHERS) - {"migrate"})
    assert services["proxy"]["depends_on"] == {
        "api": {"condition": "service_healthy", "restart": True}
    }
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in OURS - {"migrate"}:
        assert services[name]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }


def test_only_the_proxy_is_reached_from_outside_and_reaches_only_the_api(
    described: dict[str, Any], services: dict[str, Any]
) -> None:
    assert described["networks"]["stores"] == {"internal": True}
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert services["proxy"]["ports"] == ["127.0.0.1:8000:8080"]
    assert services["proxy"]["networks"] == ["front"]
    assert services["api"]["networks"] == ["front", "stores"]
    inside = set(services) - {"api", "proxy"}
    assert all(services[name]["networks"] == ["stores"] for name in inside)


def test_the_proxys_files_get_every_variable_that_they_name(
    compose: Callable[..., Any], given: dict[str, str]
) -> None:
    base = compose(given)["services"]["proxy"]
    secure = compose(given | {"VNCE_TLS_FOLDER": "/etc/tls"}, ROOT / "docker-compose.tls.yml")
    added = secure["services"]["proxy"]
    for service, others, name in ((base, {}, "nginx"), (added, base["environment"], "tls")):
        path = f"docker/nginx/{name}.conf.template"
        assert f"./{path}:/etc/nginx/templates/{name}.conf.template:ro" in service["volumes"]
        named = set(re.findall(r"\$\{(\w+)\}", (ROOT / path).read_text()))
        filled = re.compile(base["environment"]["NGINX_ENVSUBST_FILTER"])
        assert {each for each in service["environment"] if filled.match(each)} <= named
        assert named <= {*service["environment"], *others}
    assert added["volumes"][1] == f"/etc/tls:{added['environment']['VNCE_TLS_FOLDER']}:ro"
    assert added["ports"] == [f"443:{added['environment']['VNCE_TLS_PORT']}"]


def test_what_the_proxy_writes_fits_its_container(services: dict[str, Any]) -> None:
    proxy = services["proxy"]
    (size,) = (path.partition(":size=")[2] for path in proxy["tmpfs"])
    room = in_bytes(proxy["mem_limit"]) - in_bytes(size)
    assert room >= 2**28
    assert in_bytes(size) >= 10 * int(proxy["environment"]["VNCE_MAX_BODY_BYTES"])


def in_bytes(size: str) -> int:
    return int(size[:-1]) * UNITS[size[-1]]


def test_the_jobs_of_a_worker_fit_its_container(services: dict[str, Any]) -> None:
    settings = services["worker"]["environment"]
    jobs = int(settings["VNCE_CONCURRENCY"]) * int(settings["VNCE_JOB_MEMORY_BYTES"])
    assert jobs < int(services["worker"]["mem_limit"].removesuffix("g")) * 2**30


@pytest.mark.parametrize("name", ["api", "worker"])
def test_the_build_context_holds_what_is_copied_and_no_more(
    name: str, dockerfiles: dict[str, Any]
) -> None:
    everything, *entries = (ROOT / ".dockerignore").read_text().split()
    assert everything == "*"
    kept = {entry.removeprefix("!") for entry in entries if entry.startswith("!")}
    building = dockerfiles[f"docker/{name}.Dockerfile"].stages[0]
    copied = [arguments.split()[:-1] for kind, arguments in building if kind == "COPY"]
    assert {path for paths in copied for path in paths} == kept
