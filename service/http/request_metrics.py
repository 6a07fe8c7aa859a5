"""What one API process counts of its requests."""

from prometheus_client import CollectorRegistry, Counter, Histogram

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_METHOD = "other"
# Seconds; a poll takes milliseconds, a large upload is read for many seconds.
LATENCY_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class RequestMetrics:
    """Requests by method, route template and status, and how long their answers took to begin.

    They are of this process alone and begin at 0 with it; Prometheus adds processes up.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "vnce_http_requests",
            "Requests answered by this process.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "vnce_http_request_seconds",
            "Seconds from a request's arrival until its answer began.",
            ["method", "route"],
            buckets=LATENCY_BOUNDS,
            registry=registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; a client may make up methods, so that unknown ones are one."""
        known = method if method in METHODS else OTHER_METHOD
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(known, route).observe(seconds)
