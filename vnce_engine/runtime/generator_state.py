"""The state of a NumPy generator as a tensor, which a checkpoint can keep."""

import json

import numpy as np
from torch import Tensor

from vnce_engine.runtime.byte_tensor import to_bytes, to_tensor


def generator_state(rng: np.random.Generator) -> Tensor:
    """Return all that decides the generator's next draws, uint8 (bytes,)."""
    return to_tensor(json.dumps(rng.bit_generator.state).encode())


def restore_generator(rng: np.random.Generator, state: Tensor) -> None:
    """Have the generator, of the same kind, go on as when `generator_state` was asked."""
    rng.bit_generator.state = json.loads(to_bytes(state))
