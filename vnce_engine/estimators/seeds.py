"""What scikit-learn takes for `random_state`, and the engine's seed."""

import numpy as np

from vnce_engine.runtime.checks import is_whole, shown

RandomState = int | np.random.Generator | np.random.RandomState | None


def seed_of(random_state: RandomState) -> int:
    """Return a seed for the engine; an int gives the same seed always, None a new one."""
    match random_state:
        case np.random.RandomState():
            return int(random_state.randint(2**31 - 1))
        case np.random.Generator():
            return int(random_state.integers(2**63 - 1))
        case None:
            return int(np.random.default_rng().integers(2**63 - 1))
        case _:
            if not is_whole(random_state) or random_state < 0:
                raise ValueError(
                    "`random_state` must be None, a whole number of at least 0, a RandomState or "
                    f"a Generator, got {shown(random_state)}"
                )
            # Hashed, so that neighbouring seeds give unrelated streams.
            words = np.random.SeedSequence(int(random_state)).generate_state(1, np.uint64)
            return int(words[0] >> 1)


def numbered_generator(seed: int, number: int) -> np.random.Generator:
    """Return the generator of a numbered part, independent of all other numbers' and seeds'."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
