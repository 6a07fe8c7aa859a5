"""Logs of every process of ours: one line of JSON an event, on standard error.

Whatever is logged while a request is answered names the request, and while a job is run also the
job, its attempt and the request that submitted it: see `bound`.
"""

import logging
import os
import re
import sys

import structlog

# Context for a `with` statement: the fields that each event logged in its body carries, by name.
bound = structlog.contextvars.bound_contextvars

# What uvicorn says of an answer that ends early: whoever ended it has said why.
_SAID_ELSEWHERE = ("ASGI callable returned without completing response.",)
# What a log record may carry as `extra`.
EXTRA_FIELDS = (
    "request_id",
    "job_id",
    "method",
    "route",
    "status",
    "milliseconds",
    "client",
    "key_id",
)
_SECRETS = (
    # The password of a URL.
    (re.compile(r"(?<=://)([^\s:/?#@\"]*):[^\s@\"]+@"), r"\1:***@"),
    (re.compile(r"\bvnce_([0-9a-f]{12})_[\w-]+"), r"vnce_\1_***"),
    # What comes after the scheme in an Authorization header.
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]+", re.IGNORECASE), r"\1 ***"),
)


def configure(process: str) -> None:
    """Send every logger's events through one JSON formatter, named as this `process`'s.

    Ours come from level INFO up, what libraries say from WARNING up. Celery's and uvicorn's own
    handlers are taken out.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(process))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(True)
    for name in ("uvicorn", "uvicorn.access", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for name in ("service", "worker", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.INFO)
    # Celery's pool tells of lost processes here, past the root logger.
    pool = logging.getLogger("multiprocessing")
    pool.handlers, pool.propagate = [handler], False
    logging.getLogger("uvicorn.error").addFilter(is_told)
    # Requests are logged by `service.http.request_log`, with their ids.
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)


def is_told(record: logging.LogRecord) -> bool:
    """Return whether a record of the server's says what no other has said."""
    return record.msg not in _SAID_ELSEWHERE


def formatter(process: str) -> logging.Formatter:
    """Return what turns a log record, its `extra` and its context into a line of JSON."""

    def add_process(
        logger: logging.Logger, name: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        # Asked for at each event: worker processes are forked.
        return {**event, "process": process, "pid": os.getpid()}

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(allow=EXTRA_FIELDS),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            add_process,
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _line,
        ],
    )


_as_json = structlog.processors.JSONRenderer(ensure_ascii=False)


def _line(logger: logging.Logger, name: str, event: structlog.typing.EventDict) -> str:
    """Return the event as JSON, with passwords and tokens blotted out wherever they stand."""
    line = str(_as_json(logger, name, event))
    for pattern, replacement in _SECRETS:
        line = pattern.sub(replacement, line)
    return line
