"""What a checkpoint consists of, and the bytes that it is stored as."""

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# What a stored checkpoint begins with, before the SHA-256 of all that follows.
_FORMAT = b"vnce checkpoint 4\n"
_HEAD_BYTES = len(_FORMAT) + hashlib.sha256().digest_size


class UnusableCheckpointError(ValueError):
    """Raised for bytes that are no checkpoint of this version, and for another fit's checkpoint."""


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


@dataclass(frozen=True)
class LoopEntry:
    """A loop as it stands after its last step."""

    state: Callable[[], Sequence[Tensor]]
    """Asked when the checkpoint is stored: a state may be too large to be copied each step."""


Entry = RunEntry | ValueEntry | LoopEntry


class Content(NamedTuple):
    """All that a checkpoint's bytes hold."""

    made_for: str | None
    entries: Sequence[Entry]
    states: Sequence[Sequence[Tensor]]


def moved(entry: Entry, device: torch.device) -> Entry:
    """Return the entry on a device; the states of loops, which bring them there, as they are."""
    match entry:
        case LoopEntry():
            return entry
        case ValueEntry():
            return ValueEntry(entry.value.to(device))
        case RunEntry():
            return replace(
                entry,
                augmented=entry.augmented.to(device),
                next_start=entry.next_start.to(device),
                noise_at=entry.noise_at.to(device),
            )
        case _ as unknown:
            assert_never(unknown)


def to_bytes(content: Content) -> bytes:
    """Return bytes from which `from_bytes` makes the same again."""
    arrays: dict[str, NDArray[Any]] = {}
    described = []
    for position, entry in enumerate(content.entries):
        told, tensors = _described(entry)
        arrays |= _arrays(str(position), tensors)
        described.append({**told, "num_tensors": len(tensors)})
    for number, state in enumerate(content.states):
        arrays |= _arrays(f"state.{number}", state)
    sizes = [len(state) for state in content.states]
    header = {"made_for": content.made_for, "entries": described, "states": sizes}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    body = buffer.getbuffer()
    return b"".join((_FORMAT, hashlib.sha256(body).digest(), body))


def from_bytes(stored: bytes) -> Content:
    """Return what `to_bytes` was given; raise `UnusableCheckpointError` for other bytes."""
    head, body = stored[:_HEAD_BYTES], memoryview(stored)[_HEAD_BYTES:]
    if head != _FORMAT + hashlib.sha256(body).digest():
        raise UnusableCheckpointError("these bytes are no checkpoint of this version, or damaged")
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        header = json.loads(arrays["header"].tobytes())

        def tensors(prefix: str, number: int) -> list[Tensor]:
            return [_tensor(arrays, f"{prefix}.{i}") for i in range(number)]

        entries = [
            _entry(told, tensors(str(position), told["num_tensors"]))
            for position, told in enumerate(header["entries"])
        ]
        states = [tensors(f"state.{i}", size) for i, size in enumerate(header["states"])]
    return Content(header["made_for"], entries, states)


def _arrays(prefix: str, tensors: Sequence[Tensor]) -> dict[str, NDArray[Any]]:
    """Return the tensors as arrays by their names, bits of graphs eight to a byte."""
    arrays: dict[str, NDArray[Any]] = {}
    for i, tensor in enumerate(tensors):
        array = tensor.cpu().numpy()
        if array.dtype == np.bool_:
            arrays[f"{prefix}.{i}.shape"] = np.array(array.shape, dtype=np.int64)
            array = np.packbits(array)
        arrays[f"{prefix}.{i}"] = array
    return arrays


def _tensor(arrays: "np.lib.npyio.NpzFile", name: str) -> Tensor:
    array = arrays[name]
    if f"{name}.shape" in arrays:
        shape = arrays[f"{name}.shape"]
        array = np.unpackbits(array, count=int(shape.prod())).astype(np.bool_).reshape(shape)
    return torch.from_numpy(array)


def _described(entry: Entry) -> tuple[dict[str, str | int | None], Sequence[Tensor]]:
    match entry:
        case RunEntry():
            path = torch.tensor(entry.objective_path, dtype=torch.float64)
            return (
                {"kind": "run", "num_cycles": entry.num_cycles, "status": entry.status},
                [entry.augmented, entry.next_start, entry.noise_at, path],
            )
        case ValueEntry():
            return {"kind": "value"}, [entry.value]
        case LoopEntry():
            return {"kind": "loop"}, entry.state()
        case _ as unknown:
            assert_never(unknown)


def _entry(told: dict[str, Any], tensors: list[Tensor]) -> Entry:
    """Return the entry that `_described` was given; `told` has been through JSON."""
    match told["kind"]:
        case "run":
            augmented, next_start, noise_at, path = tensors
            return RunEntry(
                augmented=augmented,
                next_start=next_start,
                objective_path=tuple(path.tolist()),
                num_cycles=told["num_cycles"],
                noise_at=noise_at,
                status=told["status"],
            )
        case "value":
            return ValueEntry(*tensors)
        case kind:
            assert kind == "loop"
            return LoopEntry(lambda: tensors)
