"""A comparator that was interrupted ends at the very numbers of one that was not."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from vnce_engine import (
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.estimators.gaussian_em import GaussianEM
from vnce_engine.estimators.gaussian_score_matching import GaussianScoreMatching
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.reports import FitStep

MAKERS: dict[str, Callable[[], Any]] = {
    "natural likelihood": lambda: TruncatedGaussianMLE(tol=0.2, random_state=7),
    "natural likelihood, free linear term": lambda: TruncatedGaussianMLE(
        linear="free", penalty=0.3, max_iter=60, random_state=7
    ),
    "stochastic likelihood": lambda: TruncatedGaussianMLE(
        method="stochastic", n_draws=2, burn_in=2, thinning=1, max_iter=5, random_state=7
    ),
    "contrastive divergence": lambda: TruncatedGaussianCD(
        persistent=False, max_iter=5, random_state=7
    ),
    "persistent": lambda: TruncatedGaussianCD(linear="free", max_iter=5, random_state=7),
    "pseudo-likelihood": lambda: TruncatedGaussianPseudoLikelihood(max_iter=30, random_state=7),
    "pseudo-likelihood, mean": lambda: TruncatedGaussianPseudoLikelihood(
        imputation="mean", random_state=7
    ),
    "score matching": lambda: TruncatedGaussianScoreMatching(random_state=7),
    "em": lambda: GaussianEM(random_state=7),
    "gaussian score matching": lambda: GaussianScoreMatching(penalty=1.0, random_state=7),
    "gaussian score matching, cv": lambda: GaussianScoreMatching(penalty="cv", random_state=7),
    "em, ebic": lambda: GaussianEM(penalty="ebic", random_state=7),
    "em, cross-validation": lambda: GaussianEM(penalty="cv", random_state=7),
}


@pytest.fixture(autouse=True)
def report_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have fits report within their steps too, as those of large tables do."""
    monkeypatch.setattr("vnce_engine.runtime.progress._WORK_PER_REPORT", 1)


@pytest.fixture
def few(table_with_holes: NDArray[np.float64]) -> NDArray[np.float64]:
    return table_with_holes[:450]


class Kept:
    """Keeps the checkpoint of each step of a fit, which is stopped after `num_steps`."""

    def __init__(self, num_steps: int | None = None) -> None:
        self.stored: list[bytes] = []
        self._num_steps = num_steps

    def __call__(self, step: FitStep) -> bool:
        assert step.checkpoint is not None
        self.stored.append(step.checkpoint.dump())
        return len(self.stored) == self._num_steps


def outcome(fitted: Any) -> tuple[Any, ...]:
    """Return all that a fit has found."""
    change = fitted.column_change_
    return (
        fitted.precision_.tolist(),
        fitted.linear_.tolist(),
        fitted.objective_path_,
        fitted.status_,
        fitted.penalty_,
        fitted.diagnostics_.gradient_norm,
        fitted.diagnostics_.num_draws,
        None if change is None else change.tolist(),
        fitted.message_,
    )


@pytest.mark.parametrize("name", MAKERS)
def test_a_fit_cut_at_its_first_a_middle_or_its_last_step_ends_at_the_same_bits(
    name: str, few: NDArray[np.float64]
) -> None:
    make = MAKERS[name]
    kept = Kept()
    whole = make().fit(few, on_step=kept)
    total = len(kept.stored)
    cuts = {0, 1, total // 3, total // 2, 2 * total // 3, total - 2, total - 1}
    for cut in sorted(cuts & set(range(total))):
        checkpoint = Checkpoint.load(kept.stored[cut])
        steps: list[FitStep] = []
        resumed = make().fit(few, on_step=steps.append, checkpoint=checkpoint)
        np.testing.assert_equal(outcome(resumed), outcome(whole))
        if cut > total // 2:
            assert checkpoint.num_taken > 0
            assert len(steps) < total


def test_a_fit_that_has_come_to_take_all_rows_goes_on_with_all_of_them(
    few: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vnce_engine.comparators.natural._FIRST_ROWS", 200)
    kept = Kept()
    whole = TruncatedGaussianMLE(random_state=3).fit(few, on_step=kept)
    # Cells are missing in as many more rows, and each is 8 bytes of the checkpoint.
    assert len(kept.stored[-1]) - len(kept.stored[0]) > 8 * np.isnan(few[200:]).sum() / 2
    for cut in range(0, len(kept.stored), len(kept.stored) // 6):
        resumed = TruncatedGaussianMLE(random_state=3).fit(
            few, checkpoint=Checkpoint.load(kept.stored[cut])
        )
        np.testing.assert_equal(outcome(resumed), outcome(whole))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "changes", [{"random_state": 8}, {"column_transform": "sqrt"}, {"max_iter": 31}]
)
def test_the_checkpoint_of_another_fit_is_refused(
    name: str, changes: dict[str, Any], few: NDArray[np.float64]
) -> None:
    kept = Kept(1)
    assert MAKERS[name]().fit(few, on_step=kept).status_ == "cancelled"
    with pytest.raises(UnusableCheckpointError, match="another table, options or seed"):
        MAKERS[name]().set_params(**changes).fit(few, checkpoint=Checkpoint.load(kept.stored[0]))


def test_the_checkpoint_of_another_method_is_refused(few: NDArray[np.float64]) -> None:
    kept = Kept(1)
    TruncatedGaussianPseudoLikelihood(random_state=7).fit(few, on_step=kept)
    with pytest.raises(UnusableCheckpointError):
        GaussianEM(random_state=7).fit(few, checkpoint=Checkpoint.load(kept.stored[0]))


@pytest.mark.parametrize("imputation", ["gibbs", "mean"])
def test_a_search_over_all_rows_can_be_stopped_within(
    imputation: Literal["gibbs", "mean"], few: NDArray[np.float64]
) -> None:
    kept = Kept(3)
    stopped = TruncatedGaussianPseudoLikelihood(
        linear="zero", imputation=imputation, random_state=7
    ).fit(few, on_step=kept)
    assert (stopped.status_, len(kept.stored)) == ("cancelled", 3)
    # Of a round of imputation nothing is kept before its end; a whole table's climb has a value.
    assert stopped.n_iter_ == {"gibbs": 0, "mean": 1}[imputation]
    assert np.isfinite(stopped.precision_).all()
