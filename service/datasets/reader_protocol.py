"""What the API and its reader processes say to each other: one JSON document each way.

The file that is read, and the two files that its numbers are written to, are handed over as open
files; see `readers` and `reader_process`.
"""

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.schemas import DatasetSummary
from service.datasets.vocabulary import DatasetFormat
from service.http.problems import ProblemCode, ProblemError, ProblemItem
from service.settings import Settings

# What a reader says first: from then on an end without an answer is the file's doing.
STARTED = b"\n"
_RECEIVED_BYTES = 2**16


@dataclass(frozen=True)
class ReaderBounds:
    """What reading one upload may take."""

    memory_bytes: int
    seconds: int

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the bounds that the operator has set."""
        return cls(settings.reader_memory_bytes, settings.reader_seconds)


class ReadRequest(BaseModel):
    """How to read the file that comes with it."""

    options: ReadOptions
    limits: ReadLimits
    bounds: ReaderBounds


class Reading(BaseModel):
    """What a file was read as."""

    format: DatasetFormat
    summary: DatasetSummary
    first_rows: list[list[float | None]]
    has_cells: bool


class Refusal(BaseModel):
    """Why a file was not read."""

    code: ProblemCode
    detail: str
    errors: list[ProblemItem]

    @classmethod
    def of(cls, problem: ProblemError) -> Self:
        """Return the refusal that `problem` states."""
        return cls(code=problem.code, detail=problem.detail, errors=problem.errors)

    def problem(self) -> ProblemError:
        """Return the problem to be raised."""
        return ProblemError(self.code, self.detail, errors=self.errors)


class Mistake(BaseModel):
    """An exception of ours, as it is to be logged."""

    traceback: str


class ReadAnswer(BaseModel):
    """How reading ended."""

    outcome: Reading | Refusal | Mistake


def receive_all(conversation: socket.socket) -> bytes:
    """Return what the other side says until it has finished, or is gone."""
    received = bytearray()
    with suppress(OSError):  # a side that is lost, or too late, has not said all
        while part := conversation.recv(_RECEIVED_BYTES):
            received += part
    return bytes(received)
