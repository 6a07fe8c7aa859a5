"""A small client of the HTTP service, for the command line and the demo."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Self
from uuid import uuid4

import httpx
from pydantic import ValidationError

from service.http.problems import MEDIA_TYPE as PROBLEM_MEDIA_TYPE
from service.http.problems import Problem
from service.results.edges import Edge

# The service's documents are passed on and printed as they come; their schemas live in `service`.
JsonObject = dict[str, Any]
Parameters = Mapping[str, str | int | float | bool | list[str] | None]

TIMEOUT_SECONDS = 60.0
# A large table is read before the answer comes.
UPLOAD_SECONDS = 600.0
POLL_SECONDS = 1.0
# As many as the service gives at a time.
EDGES_A_PAGE = 10_000
# How long a wait outlasts a service that does not answer, as when it is being restarted.
PATIENCE_SECONDS = 30.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FINAL_STATES = ("succeeded", "failed", "cancelled")


class ServiceProblemError(Exception):
    """Raised when the service answers with an error; `problem` is its document."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.title}: {problem.detail}")
        self.problem = problem


class ServiceUnreachableError(Exception):
    """Raised when there is no answer, or one that is not this service's."""


class Client:
    """Speaks to one service; a context manager that closes its connections.

    Every method raises `ServiceProblemError` where the service refuses and
    `ServiceUnreachableError` where it does not answer.
    """

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    @classmethod
    def connect(cls, url: str, api_key: str | None = None) -> Self:
        """Return a client of the service at `url`, such as http://127.0.0.1:8000."""
        try:
            # A proxy named in the environment cannot reach this machine's own loopback.
            is_here = httpx.URL(url).host in LOOPBACK
            http = httpx.Client(
                base_url=url,
                timeout=TIMEOUT_SECONDS,
                trust_env=not is_here,
                headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            )
            return cls(http)
        except httpx.InvalidURL as error:
            raise ServiceUnreachableError(f"{url!r} is no URL: {error}") from error
        except (ImportError, ValueError) as error:  # of a proxy that the environment names
            reason = str(error).rstrip(".")
            raise ServiceUnreachableError(
                f"The proxy that the environment names cannot be used ({reason}); NO_PROXY excepts "
                "a host from it"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def status(self) -> JsonObject:
        """Return readiness, queue and processes; there whatever is amiss."""
        return self._json("GET", "/v1/status")

    def upload_dataset(self, content: bytes, options: Parameters, preview: bool) -> JsonObject:
        """Store a table and return its description, or only describe it as a `preview`."""
        path = "/v1/datasets:preview" if preview else "/v1/datasets"
        headers = {"Content-Type": "application/octet-stream"}
        return self._json(
            "POST", path, params=options, content=content, headers=headers, timeout=UPLOAD_SECONDS
        )

    def datasets(self, **filters: str | int | None) -> JsonObject:
        """Return one page of data sets, newest first."""
        return self._json("GET", "/v1/datasets", params=filters)

    def dataset(self, dataset_id: str) -> JsonObject:
        """Return the description of a data set."""
        return self._json("GET", f"/v1/datasets/{dataset_id}")

    def delete_dataset(self, dataset_id: str) -> None:
        """Remove a data set that no job needs."""
        self._request("DELETE", f"/v1/datasets/{dataset_id}")

    def ground_truth(self, dataset_id: str) -> JsonObject:
        """Return the true graph of a data set."""
        return self._json("GET", f"/v1/datasets/{dataset_id}/ground-truth")

    def attach_ground_truth(self, dataset_id: str, document: JsonObject) -> JsonObject:
        """Say which graph is true; jobs submitted from now on are scored against it."""
        return self._json("PUT", f"/v1/datasets/{dataset_id}/ground-truth", json=document)

    def detach_ground_truth(self, dataset_id: str) -> None:
        """Forget the true graph of a data set."""
        self._request("DELETE", f"/v1/datasets/{dataset_id}/ground-truth")

    def submit(self, body: JsonObject) -> JsonObject:
        """Submit a job and return it; a repeat of a lost request makes no second job."""
        headers = {"Idempotency-Key": uuid4().hex}
        try:
            return self._json("POST", "/v1/jobs", json=body, headers=headers)
        except ServiceUnreachableError:
            return self._json("POST", "/v1/jobs", json=body, headers=headers)

    def validate(self, body: JsonObject) -> JsonObject:
        """Return what a job would run; nothing is stored."""
        return self._json("POST", "/v1/jobs:validate", json=body)

    def jobs(self, **filters: str | int | None) -> JsonObject:
        """Return one page of jobs, newest first."""
        return self._json("GET", "/v1/jobs", params=filters)

    def job(self, job_id: str) -> JsonObject:
        """Return a job as it stands."""
        return self._json("GET", f"/v1/jobs/{job_id}")

    def cancel(self, job_id: str) -> JsonObject:
        """Ask for a job to stop and return it."""
        return self._json("PUT", f"/v1/jobs/{job_id}/cancellation")

    def poll(self, job_id: str, seconds: float = POLL_SECONDS) -> Iterator[JsonObject]:
        """Yield a job every few `seconds` until it has reached its final state, that included.

        A service that does not answer for a while is waited for.
        """
        last_answer = time.monotonic()
        while True:
            try:
                job = self.job(job_id)
            except ServiceUnreachableError:
                if time.monotonic() - last_answer > PATIENCE_SECONDS:
                    raise
            else:
                last_answer = time.monotonic()
                yield job
                if job["state"] in FINAL_STATES:
                    return
            time.sleep(seconds)

    def result(self, job_id: str) -> JsonObject:
        """Return the result document of a job that has succeeded."""
        return self._json("GET", f"/v1/jobs/{job_id}/result")

    def result_file(self, job_id: str, name: str) -> bytes:
        """Return the bytes of one of the files that the result lists."""
        return self._request("GET", f"/v1/jobs/{job_id}/result/files/{name}").content

    def edges(self, job_id: str, limit: int | None = None, min_weight: float = 0.0) -> list[Edge]:
        """Return the strongest pairs of variables whose |scaled interaction| is at least that.

        At most `limit` of them; None: all.
        """
        parameters = {"limit": limit or EDGES_A_PAGE, "min_abs_weight": min_weight, "cursor": None}
        rows: list[JsonObject] = []
        while True:
            page = self._json("GET", f"/v1/jobs/{job_id}/result/graph", params=parameters)
            rows += page["edges"]
            parameters["cursor"] = page["next_cursor"]
            if limit is not None or page["next_cursor"] is None:
                break
        return [Edge(**{key: value for key, value in row.items() if key != "rank"}) for row in rows]

    def create_key(self, body: JsonObject) -> JsonObject:
        """Make an API key; return it with its token."""
        return self._json("POST", "/v1/api-keys", json=body)

    def keys(self, **filters: str | int | None) -> JsonObject:
        """Return one page of API keys, newest first."""
        return self._json("GET", "/v1/api-keys", params=filters)

    def revoke_key(self, key_id: str) -> None:
        """Let an API key work no longer."""
        self._request("DELETE", f"/v1/api-keys/{key_id}")

    def _json(self, method: str, path: str, **request: Any) -> JsonObject:
        document: JsonObject = self._request(method, path, **request).json()
        return document

    def _request(self, method: str, path: str, **request: Any) -> httpx.Response:
        if (parameters := request.get("params")) is not None:
            request["params"] = {k: v for k, v in parameters.items() if v is not None}
        try:
            response = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            url = self._http.base_url
            raise ServiceUnreachableError(f"No service answers at {url}: {error}") from error
        if response.is_success:
            return response
        raise _refusal(response)


def _refusal(response: httpx.Response) -> ServiceProblemError | ServiceUnreachableError:
    if response.headers.get("Content-Type", "").startswith(PROBLEM_MEDIA_TYPE):
        try:
            return ServiceProblemError(Problem.model_validate_json(response.content))
        except ValidationError:
            pass
    return ServiceUnreachableError(
        f"{response.url} answers with status {response.status_code} and no problem document; "
        "is it the VNCE service?"
    )
