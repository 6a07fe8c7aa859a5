"""What a fit has come to, small enough to be stored, so that another process can go on from there.

A fit is a sequence of stages: the same sequence for the same table, options and seed. The
checkpoint keeps what each came to, and of the one at hand its last estimate. A fit that is given
the checkpoint of an interrupted one goes through the same sequence, takes what is there instead of
computing it, and goes on from the last estimate, to the same end within its tolerance. What is
drawn between stages is drawn again; a stage that draws at every step keeps its generator's state.
"""

import hashlib
import io
from collections.abc import Callable
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
# Tensors, numbers, texts and None, tuples of them, and dicts without tensors: what `torch.load`
# reads without running any code. Nothing is changed in place once it is saved.
Saved = Any

# What a stored checkpoint begins with, before the SHA-256 of all that follows.
_FORMAT = b"vnce checkpoint 5\n"
_HEAD_BYTES = len(_FORMAT) + hashlib.sha256().digest_size


class UnusableCheckpointError(ValueError):
    """Raised for bytes that are no checkpoint of this version, and for another fit's checkpoint."""


class Checkpoint:
    """What the stages of a fit have come to, by their positions in it.

    One checkpoint serves one fit. `num_taken` says of how many stages an earlier attempt had
    something.
    """

    def __init__(self) -> None:
        self.num_taken = 0
        self._saved: dict[tuple[int, ...], Saved] = {}
        # That of the next stage: the number of the stage that it is within, and its own.
        self._next = [0]

    def begin_fit(self, made_for: str) -> None:
        """Say which fit this is the checkpoint of, by a name for all that decides its outcome.

        A fit that is a stage of something larger says so of itself too. Raises
        `UnusableCheckpointError` if it is another's, or has served a fit already.
        """
        if self._next[-1]:
            raise UnusableCheckpointError("`checkpoint` has served a fit; load it anew for another")
        if self._saved.setdefault(self._take_position(), made_for) != made_for:
            raise UnusableCheckpointError(
                "`checkpoint` is of a fit of another table, options or seed"
            )

    def move_to(self, device: torch.device) -> None:
        """Bring what is still to be taken to the device on which the fit works."""
        for position, value in self._saved.items():
            self._saved[position] = _moved(value, device)

    def stage(self) -> "Stage":
        """Begin the next stage, which has what an earlier attempt saved of it."""
        position = self._take_position()
        saved = self._saved.get(position)
        self.num_taken += saved is not None
        return Stage(self._saved, position, saved)

    def once(self, compute: Callable[[], T]) -> T:
        """Return what `compute` returns, a stage; from an earlier attempt if that had it.

        Stages within `compute` are forgotten when it returns.
        """
        stage = self.stage()
        if stage.saved is not None:
            value: T = stage.saved
            return value
        self._next.append(0)
        try:
            value = compute()
        finally:
            self._next.pop()
        stage.save(value)
        return value

    def _take_position(self) -> tuple[int, ...]:
        position = tuple(self._next)
        self._next[-1] += 1
        return position

    def dump(self) -> bytes:
        """Return all that is known, what is still to be taken included."""
        buffer = io.BytesIO()
        torch.save(self._saved, buffer)
        body = buffer.getbuffer()
        return b"".join((_FORMAT, hashlib.sha256(body).digest(), body))

    @classmethod
    def load(cls, stored: bytes) -> Self:
        """Return the checkpoint for a fit that is to go on from what `dump` returned.

        Raises `UnusableCheckpointError`.
        """
        checkpoint = cls()
        checkpoint._saved = _decoded(stored)
        return checkpoint


class Stage:
    """A stage of a fit."""

    def __init__(
        self, everything: dict[tuple[int, ...], Saved], position: tuple[int, ...], saved: Saved
    ) -> None:
        self.saved = saved
        """What an earlier attempt saved of this stage last; None if nothing."""
        self._everything, self._position = everything, position

    @property
    def is_last(self) -> bool:
        """Whether nothing is known of later stages."""
        return max(self._everything, default=()) <= self._position

    def save(self, value: Saved) -> None:
        """Keep this in place of what was saved of the stage, and of stages within it, before."""
        depth = len(self._position)
        for position in [p for p in self._everything if p[:depth] == self._position]:
            del self._everything[position]
        self._everything[self._position] = value


def _decoded(stored: bytes) -> dict[tuple[int, ...], Saved]:
    """Return what `dump` wrote."""
    head, body = stored[:_HEAD_BYTES], stored[_HEAD_BYTES:]
    if head != _FORMAT + hashlib.sha256(body).digest():
        raise UnusableCheckpointError("these bytes are no checkpoint of this version, or damaged")
    saved: dict[tuple[int, ...], Saved] = torch.load(
        io.BytesIO(body), map_location="cpu", weights_only=True
    )
    return saved


def _moved(value: Saved, device: torch.device) -> Saved:
    match value:
        case Tensor():
            return value.to(device)
        case tuple():
            return tuple(_moved(part, device) for part in value)
        case _:
            return value
