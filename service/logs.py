"""Logs of the API in the stack: one line of JSON an event, on standard error."""

import logging

import structlog


def configure() -> None:
    """Send every logger's events, uvicorn's included, through one JSON formatter."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(True)
    for name in ("uvicorn", "uvicorn.access", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # Migrations and health checks would fill the log.
    logging.getLogger("alembic").setLevel(logging.WARNING)


def formatter() -> logging.Formatter:
    """Return what turns a log record and its `extra` into a line of JSON."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(allow=["request_id"]),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    )
