"""A device that is not the CPU, for machines that have no other."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

# Torch knows it on every machine and computes nothing there, so that nobody mistakes it for a
# device that works.
ELSEWHERE = torch.device("meta")


class _Elsewhere(Tensor):
    """A tensor that says it is elsewhere; its numbers are those of a tensor on the CPU."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "_Elsewhere":
        made: _Elsewhere = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=ELSEWHERE,
        )
        made.inner = inner
        return made

    # The next three are made in parts of torch that do not ask `__torch_dispatch__`.

    def __matmul__(self, other: Tensor) -> Tensor:
        """Return the product; torch would turn a vector into a row and back in place."""
        is_row = self.ndim == 1 and other.ndim == 2
        return torch.mv(other.mT, self) if is_row else torch.matmul(self, other)

    def new_tensor(self, data: Any) -> Tensor:
        """Return numbers as a tensor elsewhere."""
        return _Elsewhere(self.inner.new_tensor(data))

    def tolist(self) -> Any:
        """Return the numbers, which a copy to the CPU would be asked for elsewhere."""
        return self.inner.tolist()

    @classmethod
    def __torch_dispatch__(
        cls,
        operation: Callable[..., Any],
        types: Any,
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:
        return _computed(operation, arguments, options or {})


class _Pretence(TorchDispatchMode):
    """While it lasts, tensors can be made on and moved to the device."""

    def __torch_dispatch__(
        self,
        operation: Callable[..., Any],
        types: Any,
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:
        return _computed(operation, arguments, options or {})


def _computed(operation: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return what an operation gives on the CPU, elsewhere if it would be; refuse what CUDA would.

    Tensors of both devices do not go together but for single numbers, and a generator of the CPU
    does not draw elsewhere.
    """
    tensors = [leaf for leaf in tree_leaves((arguments, options)) if isinstance(leaf, Tensor)]
    is_moving = options.get("device") is not None
    if is_moving:
        is_elsewhere = torch.device(options["device"]) == ELSEWHERE
    else:
        is_elsewhere = any(isinstance(tensor, _Elsewhere) for tensor in tensors)
        here = [t for t in tensors if t.ndim and not isinstance(t, _Elsewhere)]
        is_copying = operation is torch.ops.aten.copy_.default
        if is_elsewhere and here and not is_copying:
            raise RuntimeError(f"{operation} has tensors on the CPU and elsewhere")
    if is_elsewhere and options.get("generator") is not None:
        raise RuntimeError(f"{operation} draws elsewhere by a generator on the CPU")
    on_cpu = {**options, "device": torch.device("cpu")} if is_moving else options
    inner = tree_map_only(_Elsewhere, lambda tensor: tensor.inner, (arguments, on_cpu))
    result = operation(*_with_tensors(operation, inner[0]), **inner[1])
    if "out" in options:
        return options["out"]
    if operation._schema.is_mutable:
        return arguments[0]
    return tree_map_only(Tensor, _Elsewhere, result) if is_elsewhere else result


def _with_tensors(operation: Any, arguments: tuple[Any, ...]) -> list[Any]:
    """Return arguments whose single numbers are tensors again where the operation wants tensors."""
    parameters = operation._schema.arguments
    return [
        torch.scalar_tensor(value, dtype=torch.int64 if isinstance(value, int) else None)
        if isinstance(value, int | float) and str(parameter.type) == "Tensor"
        else value
        for value, parameter in zip(arguments, parameters, strict=False)
    ]


@pytest.fixture
def elsewhere() -> Iterator[torch.device]:
    """Return a device on which numbers come out as on the CPU, and mixed devices are errors."""
    with _Pretence():
        yield ELSEWHERE
