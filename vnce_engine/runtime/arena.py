"""Memory for what is kept of many blocks, apart from that of passing results.

A block is built among passing results as large as itself. Kept where it was built it would pin the
gaps that these leave, which a C library's allocator often cannot use again: a fifth of the memory
that a long table took. In an arena tensors lie side by side.
"""

import torch
from torch import Tensor

# Large enough for the C library to ask the system for a piece of its own, which takes up memory
# only as far as it is written to, and goes back to the system at once.
_PIECE_BYTES = 2**25 + 2**20
# Where a tensor begins, as PyTorch's own do.
_ALIGNMENT = 64


class Arena:
    """Pieces of memory on which tensors are laid one after the other; each lives as long as they.

    All tensors of an arena are on one device.
    """

    def __init__(self) -> None:
        self._free = torch.empty(0, dtype=torch.uint8)

    def store(self, tensor: Tensor) -> Tensor:
        """Return a contiguous copy of a tensor, in the arena."""
        size = tensor.numel() * tensor.element_size()
        step = -(-size // _ALIGNMENT) * _ALIGNMENT
        if step > len(self._free):
            piece = max(step, _PIECE_BYTES)
            self._free = torch.empty(piece, dtype=torch.uint8, device=tensor.device)
        place, self._free = self._free[:size], self._free[step:]
        return place.view(tensor.dtype).view(tensor.shape).copy_(tensor)
