"""Bytes as tensors, which is what a checkpoint keeps."""

import torch
from torch import Tensor


def to_tensor(content: bytes) -> Tensor:
    """Return the bytes, of which there are some, as uint8 (number of bytes,)."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def to_bytes(tensor: Tensor) -> bytes:
    """Return what `to_tensor` was given."""
    return tensor.numpy().tobytes()
