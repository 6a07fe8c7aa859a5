"""The parameter `column_transform`: given for all columns or each, or chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from vnce_engine.data.table_transform import TRANSFORMS
from vnce_engine.pipeline.fit import AUTO
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.checks import check_choice, shown
from vnce_engine.runtime.progress import FitCancelledError, OnStep, Progress
from vnce_engine.runtime.reports import FitStep
from vnce_engine.selection.transform_choice import TransformEvidence

TransformName = Literal["none", "sqrt", "cbrt", "log1p", "rank-normal"]

# Share of the whole at which the transform has been chosen.
_SHARE = 0.3


@dataclass(frozen=True)
class ColumnTransforms:
    """The transform of each column, and what reports on the fit that follows."""

    columns: tuple[str, ...]
    progress: Progress
    evidence: tuple[TransformEvidence, ...] = ()
    """What was compared; empty where they were given."""


def given_transforms(given: object, num_columns: int) -> tuple[str, ...] | None:
    """Return the transform of each column, None if it is to be chosen; raise `ValueError`."""
    if isinstance(given, str):
        check_choice("column_transform", given, (AUTO, *TRANSFORMS))
        return None if given == AUTO else (given,) * num_columns
    if not isinstance(given, Sequence | np.ndarray) or len(given) != num_columns:
        raise ValueError(
            f"`column_transform` must be a name, or one for each of {num_columns} columns, got "
            f"{shown(given)}"
        )
    for name in given:
        check_choice("column_transform", name, TRANSFORMS)
    return tuple(str(name) for name in given)


def chosen_transforms(
    choose: Callable[[Progress], tuple[TransformEvidence, ...]],
    num_columns: int,
    on_step: OnStep | None,
    checkpoint: Checkpoint | None,
) -> ColumnTransforms:
    """Return what was chosen, a stage that is done again after an interruption.

    Where the caller has cancelled it, so that the fit is at once.
    """

    def tell(step: FitStep) -> bool | None:
        share = replace(step, stage="transform", fraction=_SHARE * step.fraction, checkpoint=None)
        return None if on_step is None else on_step(share)

    try:
        evidence = choose(Progress(tell))
    except FitCancelledError:
        return ColumnTransforms(("none",) * num_columns, Progress(lambda _: True))
    (chosen,) = (step.transform for step in evidence if step.chosen)
    columns = (chosen,) * num_columns if isinstance(chosen, str) else chosen
    return ColumnTransforms(columns, Progress(on_step, checkpoint, begins_at=_SHARE), evidence)
