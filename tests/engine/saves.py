"""Fits, all that their checkpoints were, and how far from them those come out that go on."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vnce_engine.runtime.checkpoint import Checkpoint, Saved, Stage

FloatArray = NDArray[np.float64]


def fit_and_saves(fit: Callable[[Checkpoint], Any], most: int) -> tuple[Any, list[bytes]]:
    """Return what `fit` returns, and its checkpoint as it was after its saves.

    After `most` of them at most, evenly, the first and the last among them.
    """
    checkpoint = Checkpoint()
    known: list[dict[tuple[int, ...], Saved]] = []
    save = Stage.save

    def save_and_copy(stage: Stage, value: Saved) -> None:
        save(stage, value)
        # A fit may have others, of searches that are not taken up.
        if stage._everything is checkpoint._saved:
            known.append(dict(checkpoint._saved))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stage, "save", save_and_copy)
        whole = fit(checkpoint)
    positions = np.linspace(0, len(known) - 1, min(most, len(known)), dtype=int)
    stored = []
    for position in positions:
        checkpoint._saved = known[position]
        stored.append(checkpoint.dump())
    return whole, stored


def largest_difference(resumed: Any, whole: Any, X: FloatArray) -> float:
    """Return the largest difference of K and h of two estimators fitted to X (n, d).

    Columns are scaled to K_ii = 1, and measured from their means where h is estimated.
    """
    root = np.sqrt(whole.precision_.diagonal())
    precision = resumed.precision_ - whole.precision_
    centre = np.nanmean(X, axis=0) * (whole.linear_choice_ == "free")
    of_precision = precision / np.outer(root, root)
    of_linear = (resumed.linear_ - whole.linear_ - precision @ centre) / root
    return float(max(np.abs(of_precision).max(), np.abs(of_linear).max()))
