"""The stack's logs are JSON, one line an event."""

import json
import logging
import sys

from service import logs


def test_event_is_one_line_of_json_with_its_request() -> None:
    try:
        raise ValueError("over\ntwo lines")
    except ValueError:
        record = logging.LogRecord(
            "service", logging.ERROR, __file__, 1, "it %s", ("failed",), sys.exc_info()
        )
    record.request_id = "abc"
    line = logs.formatter().format(record)
    assert "\n" not in line
    event = json.loads(line)
    assert (event["event"], event["level"], event["logger"]) == ("it failed", "error", "service")
    assert event["request_id"] == "abc"
    assert "two lines" in event["exception"]
    assert event["timestamp"].endswith("Z")
