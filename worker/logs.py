"""Logs of the worker's processes: one line an event, on standard error."""

import logging

FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s %(message)s"


def configure() -> None:
    """Log our events, and what libraries think is worth a warning."""
    logging.basicConfig(level=logging.WARNING, format=FORMAT)
    logging.getLogger("worker").setLevel(logging.INFO)
    logging.captureWarnings(True)
