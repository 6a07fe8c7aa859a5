"""What a fit has done so far, small enough to be stored, so that another process can go on from it.

A fit is a sequence of runs of cycles and of judgements by held-out rows: the same sequence for the
same table, options and seed. The journal keeps how each ended. A fit that is given the journal of
an interrupted one goes through the same sequence and takes what is there instead of computing it.

While something is chosen, what runs hand on to each other (q, slopes for acceleration) is kept as
it was after the last of them, and the interrupted run begins again, so that choices come out as
they would have to the last bit. In the final fit, which may be long and large, only the estimate
is kept after each cycle: it goes on from there with a new q, to the same end within the tolerance.
"""

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

# What a stored journal begins with, before the SHA-256 of all that follows.
_FORMAT = b"vnce journal 2\n"
_HEAD_BYTES = len(_FORMAT) + hashlib.sha256().digest_size


class UnusableJournalError(ValueError):
    """Raised for bytes that are no journal of this version, and for a journal of another fit."""


@dataclass(frozen=True)
class RunEntry:
    """A run of cycles as it stands."""

    augmented: Tensor
    """(d + 1, d + 1): the latest estimate."""
    next_start: Tensor
    """(d + 1, d + 1): where the next cycle starts."""
    objective_path: tuple[float, ...]
    """Of all runs of these cycles so far."""
    num_cycles: int
    """Of this run."""
    noise_at: Tensor
    """(d + 1, d + 1): the estimate under which the noise rows were last completed."""
    status: str | None = None
    """How it ended; None while it goes on."""


@dataclass(frozen=True)
class ValueEntry:
    """What something came to that is not computed twice."""

    value: Tensor


Entry = RunEntry | ValueEntry


class Holder(Protocol):
    """Something that runs change and that later runs depend on."""

    def state(self) -> list[Tensor]:
        """Return what is to be kept; the tensors are not changed afterwards."""

    def restore(self, state: list[Tensor]) -> None:
        """Become what `state` was returned for."""


class Journal:
    """The entries of a fit in their order, and those of an earlier fit that are still to be taken.

    One journal serves one fit. `num_taken` says how many entries came from an earlier one.
    """

    def __init__(
        self,
        entries: Sequence[Entry] = (),
        states: Sequence[Sequence[Tensor]] = (),
        made_for: str | None = None,
    ) -> None:
        self.num_taken = 0
        self._made_for = made_for
        self._has_begun = False
        self._entries: list[Entry] = []
        self._earlier = list(reversed(entries))
        # Of the holders after the last entry.
        self._states = [list(state) for state in states]
        self._holders: Sequence[Holder] = ()
        self._is_within_value = False
        self._run_at = 0

    def begin_fit(self, made_for: str) -> None:
        """Say which fit this is the journal of, by a name for all that decides its outcome.

        Raises `UnusableJournalError` if it is another's, or has served a fit already.
        """
        if self._has_begun:
            raise UnusableJournalError("`journal` has served a fit; load it anew for another")
        if self._made_for not in (None, made_for):
            raise UnusableJournalError("`journal` is of a fit of another table, options or seed")
        self._made_for, self._has_begun = made_for, True

    def move_to(self, device: torch.device) -> None:
        """Bring what is still to be taken to the device on which the fit works."""
        self._earlier = [_moved(entry, device) for entry in self._earlier]
        self._states = [[tensor.to(device) for tensor in state] for state in self._states]

    def watch(self, holders: Sequence[Holder]) -> None:
        """Keep the state of these, and no others, after each entry from now on.

        Without any, runs go on from their latest cycle.
        """
        self._holders = holders

    def begin_run(self) -> RunEntry | None:
        """Return the run that begins now as an earlier fit left it, or None.

        Of the final fit's runs the last that is known goes on even if it had ended: a fit is judged
        at a point that was computed.
        """
        if self._is_within_value:
            return None
        self._run_at = len(self._entries)
        if not (self._earlier and isinstance(self._earlier[-1], RunEntry)):
            return None
        entry = self._earlier.pop()
        assert isinstance(entry, RunEntry)
        self.num_taken += 1
        if not self._earlier and not self._holders:
            return replace(entry, status=None)
        return entry

    def note_run(self, entry: RunEntry) -> None:
        """Write down how the run at hand stands, over what was written of it before."""
        is_kept = entry.status is not None or not self._holders
        if not self._is_within_value and is_kept:
            self._add(entry)

    def value(self, compute: Callable[[], Tensor]) -> Tensor:
        """Return what `compute` returns, from an earlier fit if that had it.

        Runs within `compute` leave no entries: it is done as a whole or not at all. It must not
        raise where the fit goes on afterwards: later entries would be taken for its own.
        """
        self._run_at = len(self._entries)
        if self._earlier and isinstance(self._earlier[-1], ValueEntry):
            entry = self._earlier.pop()
            assert isinstance(entry, ValueEntry)
            self.num_taken += 1
        else:
            self._is_within_value = True
            try:
                entry = ValueEntry(compute())
            finally:
                self._is_within_value = False
        self._add(entry)
        return entry.value

    def _add(self, entry: Entry) -> None:
        self._entries[self._run_at :] = [entry]
        if self._earlier:
            return
        if len(self._entries) == self.num_taken:
            # All that was known has been taken, and what follows is to find things as they were.
            for holder, state in zip(self._holders, self._states, strict=True):
                holder.restore(state)
        else:
            self._states = [holder.state() for holder in self._holders]

    def dump(self) -> bytes:
        """Return all that is known, entries still to be taken included."""
        entries = [*self._entries, *reversed(self._earlier)]
        arrays: dict[str, np.ndarray] = {}
        described = []
        for position, entry in enumerate(entries):
            match entry:
                case RunEntry():
                    arrays[f"{position}.augmented"] = entry.augmented.cpu().numpy()
                    arrays[f"{position}.next_start"] = entry.next_start.cpu().numpy()
                    arrays[f"{position}.noise_at"] = entry.noise_at.cpu().numpy()
                    arrays[f"{position}.objective_path"] = np.array(entry.objective_path)
                    described.append({"num_cycles": entry.num_cycles, "status": entry.status})
                case ValueEntry():
                    arrays[f"{position}.value"] = entry.value.cpu().numpy()
                    described.append({})
        for number, state in enumerate(self._states):
            arrays.update({f"state.{number}.{i}": t.cpu().numpy() for i, t in enumerate(state)})
        sizes = [len(state) for state in self._states]
        header = {"made_for": self._made_for, "entries": described, "states": sizes}
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        content = buffer.getbuffer()
        return b"".join((_FORMAT, hashlib.sha256(content).digest(), content))

    @classmethod
    def load(cls, content: bytes) -> Self:
        """Return the journal for a fit that is to go on from what `dump` returned.

        Raises `UnusableJournalError`.
        """
        head, body = content[:_HEAD_BYTES], memoryview(content)[_HEAD_BYTES:]
        if head != _FORMAT + hashlib.sha256(body).digest():
            raise UnusableJournalError("these bytes are no journal of this version, or damaged")
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            header = json.loads(arrays["header"].tobytes())
            entries = [
                _read(arrays, position, described)
                for position, described in enumerate(header["entries"])
            ]
            states = [
                [torch.from_numpy(arrays[f"state.{number}.{i}"]) for i in range(size)]
                for number, size in enumerate(header["states"])
            ]
        return cls(entries, states, header["made_for"])


def _moved(entry: Entry, device: torch.device) -> Entry:
    match entry:
        case ValueEntry():
            return ValueEntry(entry.value.to(device))
        case RunEntry():
            return replace(
                entry,
                augmented=entry.augmented.to(device),
                next_start=entry.next_start.to(device),
                noise_at=entry.noise_at.to(device),
            )


def _read(
    arrays: "np.lib.npyio.NpzFile", position: int, described: dict[str, int | str | None]
) -> Entry:
    def tensor(name: str) -> Tensor:
        return torch.from_numpy(arrays[f"{position}.{name}"])

    if "num_cycles" not in described:
        return ValueEntry(tensor("value"))
    return RunEntry(
        augmented=tensor("augmented"),
        next_start=tensor("next_start"),
        objective_path=tuple(tensor("objective_path").tolist()),
        noise_at=tensor("noise_at"),
        num_cycles=int(described["num_cycles"] or 0),
        status=None if described["status"] is None else str(described["status"]),
    )
