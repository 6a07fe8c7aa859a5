"""Reading tables in tests."""

from collections.abc import Callable
from typing import Any

import pytest

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import ReadDataset, read_dataset
from service.http.problems import ProblemError

Read = Callable[..., ReadDataset]
Refuse = Callable[..., ProblemError]


@pytest.fixture(scope="session")
def limits() -> ReadLimits:
    """Return limits that no ordinary test reaches."""
    return ReadLimits(
        max_cells=100_000, max_columns=200, max_name_length=60, max_decoded_bytes=1_600_000
    )


@pytest.fixture(scope="session")
def read(limits: ReadLimits) -> Read:
    """Return a function that reads bytes or text with the given options."""

    def read_with(content: bytes | str, **options: Any) -> ReadDataset:
        body = content.encode() if isinstance(content, str) else content
        return read_dataset(body, ReadOptions.model_validate(options), limits)

    return read_with


@pytest.fixture(scope="session")
def refuse(read: Read) -> Refuse:
    """Return a function that reads what cannot be read, and returns the problem."""

    def refuse_with(content: bytes | str, **options: Any) -> ProblemError:
        with pytest.raises(ProblemError) as caught:
            read(content, **options)
        return caught.value

    return refuse_with
