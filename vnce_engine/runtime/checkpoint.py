"""What a fit has done so far, small enough to be stored, so that another process can go on from it.

A fit is a sequence of runs of cycles, of values and of loops: the same sequence for the same table,
options and seed. The checkpoint keeps how each ended. A fit that is given the checkpoint of an
interrupted one goes through the same sequence and takes what is there instead of computing it.

A loop (steps of a stochastic gradient, rounds of imputation, iterations of EM) is kept as the state
after its last step, generators and chains included, and goes on from there as if nothing had been:
the end is the same to the last bit. Where a step is long, values within it are kept until it ends.

Runs of cycles, of VNCE's default algorithm, have states of hundreds of megabytes. While something
is chosen, what runs hand on to each other (q, slopes for acceleration) is kept as it was after the
last of them, and the interrupted run begins again, so that choices come out as they would have to
the last bit. In the final fit, which may be long and large, only the estimate is kept after each
cycle: it goes on from there with a new q, to the same end within the tolerance.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, Self

import torch
from torch import Tensor

from vnce_engine.runtime import checkpoint_entries
from vnce_engine.runtime.checkpoint_entries import (
    Content,
    Entry,
    LoopEntry,
    RunEntry,
    UnusableCheckpointError,
    ValueEntry,
)

__all__ = ["Checkpoint", "Keep", "RunEntry", "Stateful", "UnusableCheckpointError"]

# Returns what the function returns that it is given, or returned in an earlier fit: see
# `Checkpoint.value`.
Keep = Callable[[Callable[[], Tensor]], Tensor]


class Stateful(Protocol):
    """Something that steps change and that later steps depend on."""

    def state(self) -> list[Tensor]:
        """Return what is to be kept; the tensors are not changed afterwards."""

    def restore(self, state: list[Tensor]) -> None:
        """Become what `state` was returned for."""


class Checkpoint:
    """The entries of a fit in their order, and those of an earlier fit that are still to be taken.

    One checkpoint serves one fit. `num_taken` says how many entries came from an earlier one.
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
        # Of what is tracked, after the last entry.
        self._states = [list(state) for state in states]
        self._tracked: Sequence[Stateful] = ()
        self._is_within_value = False
        self._run_at = 0

    def begin_fit(self, made_for: str) -> None:
        """Say which fit this is the checkpoint of, by a name for all that decides its outcome.

        Raises `UnusableCheckpointError` if it is another's, or has served a fit already.
        """
        if self._has_begun:
            raise UnusableCheckpointError("`checkpoint` has served a fit; load it anew for another")
        if self._made_for not in (None, made_for):
            raise UnusableCheckpointError(
                "`checkpoint` is of a fit of another table, options or seed"
            )
        self._made_for, self._has_begun = made_for, True

    def move_to(self, device: torch.device) -> None:
        """Bring what is still to be taken to the device on which the fit works."""
        self._earlier = [checkpoint_entries.moved(entry, device) for entry in self._earlier]
        self._states = [[tensor.to(device) for tensor in state] for state in self._states]

    def track(self, tracked: Sequence[Stateful]) -> None:
        """Keep the state of these, and no others, after each entry from now on.

        Without any, runs go on from their latest cycle.
        """
        self._tracked = tracked

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
        if not self._earlier and not self._tracked:
            return replace(entry, status=None)
        return entry

    def note_run(self, entry: RunEntry) -> None:
        """Write down how the run at hand stands, over what was written of it before."""
        is_kept = entry.status is not None or not self._tracked
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

    def begin_loop(self, loop: Stateful) -> Callable[[], None]:
        """Bring `loop` to where an earlier fit left it, and keep where it is from now on.

        Call what is returned after each step, when `loop` has the state to go on from: values kept
        within the step are then forgotten. A loop may also be restored to the state after its last
        step; it has to see by itself that it is over.
        """
        if self._earlier and isinstance(self._earlier[-1], LoopEntry):
            entry = self._earlier.pop()
            assert isinstance(entry, LoopEntry)
            loop.restore(list(entry.state()))
            self.num_taken += 1
        self._entries.append(LoopEntry(loop.state))
        position = len(self._entries)

        def end_step() -> None:
            del self._entries[position:]

        return end_step

    def _add(self, entry: Entry) -> None:
        self._entries[self._run_at :] = [entry]
        if self._earlier:
            return
        if len(self._entries) == self.num_taken:
            # All that was known has been taken, and what follows is to find things as they were.
            for holder, state in zip(self._tracked, self._states, strict=True):
                holder.restore(state)
        else:
            self._states = [holder.state() for holder in self._tracked]

    def dump(self) -> bytes:
        """Return all that is known, entries still to be taken included."""
        entries = [*self._entries, *reversed(self._earlier)]
        return checkpoint_entries.to_bytes(Content(self._made_for, entries, self._states))

    @classmethod
    def load(cls, stored: bytes) -> Self:
        """Return the checkpoint for a fit that is to go on from what `dump` returned.

        Raises `UnusableCheckpointError`.
        """
        content = checkpoint_entries.from_bytes(stored)
        return cls(content.entries, content.states, content.made_for)
