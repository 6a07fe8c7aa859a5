"""The state of a NumPy generator as a tensor, which a journal can keep."""

import json

import numpy as np
import torch
from torch import Tensor


def generator_state(rng: np.random.Generator) -> Tensor:
    """Return all that decides the generator's next draws, uint8 (bytes,)."""
    state = json.dumps(rng.bit_generator.state).encode()
    return torch.frombuffer(bytearray(state), dtype=torch.uint8)


def restore_generator(rng: np.random.Generator, state: Tensor) -> None:
    """Have the generator, of the same kind, go on as when `generator_state` was asked."""
    rng.bit_generator.state = json.loads(bytes(state.tolist()))
