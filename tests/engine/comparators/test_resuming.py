"""A comparator that was interrupted goes on from its last estimate, to about the same end."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.saves import fit_and_saves, largest_difference
from vnce_engine import (
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.estimators.gaussian_em import GaussianEM
from vnce_engine.estimators.gaussian_score_matching import GaussianScoreMatching
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError

NUM_ROWS, MISSING = 300, 0.2
# What chains may add to an estimate's variance, as a share of that by sampling.
CHAINS = 0.2
# How far apart an interrupted fit and another may end, K_ii = 1. Searches end nearer to their
# optimum than that. Chains that are begun anew are another sample: five standard errors of the
# difference of two.
SEARCHED = 1e-4
SAMPLED = 5 * math.sqrt(2 * CHAINS / (NUM_ROWS * (1 - MISSING) ** 2))

MAKERS: dict[str, tuple[Callable[[], Any], float]] = {
    "natural likelihood": (partial(TruncatedGaussianMLE, tol=CHAINS), SAMPLED),
    "natural likelihood, free linear term": (
        partial(TruncatedGaussianMLE, linear="free", penalty=0.3, max_iter=60),
        SAMPLED,
    ),
    "stochastic likelihood": (
        partial(
            TruncatedGaussianMLE,
            linear="zero",
            method="stochastic",
            n_draws=2,
            burn_in=2,
            thinning=1,
            max_iter=5,
        ),
        SAMPLED,
    ),
    "contrastive divergence": (
        partial(TruncatedGaussianCD, linear="zero", persistent=False, max_iter=5),
        SAMPLED,
    ),
    "persistent": (partial(TruncatedGaussianCD, linear="free", max_iter=5), SAMPLED),
    "pseudo-likelihood": (TruncatedGaussianPseudoLikelihood, SAMPLED),
    "pseudo-likelihood, mean": (
        partial(TruncatedGaussianPseudoLikelihood, imputation="mean"),
        SEARCHED,
    ),
    "score matching": (partial(TruncatedGaussianScoreMatching, linear="zero"), SAMPLED),
    "em": (GaussianEM, SEARCHED),
    "em, ebic": (partial(GaussianEM, penalty="ebic"), SEARCHED),
    "em, cross-validation": (partial(GaussianEM, penalty="cv"), SEARCHED),
    "gaussian score matching": (partial(GaussianScoreMatching, penalty=1.0), SEARCHED),
    "gaussian score matching, cv": (partial(GaussianScoreMatching, penalty="cv"), SEARCHED),
}


@pytest.fixture
def few(table_with_holes: NDArray[np.float64]) -> NDArray[np.float64]:
    return table_with_holes[:NUM_ROWS]


def made(name: str) -> Any:
    return MAKERS[name][0]().set_params(random_state=7)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_a_fit_that_goes_on_from_any_save_ends_about_where_it_would_have(
    name: str, few: NDArray[np.float64]
) -> None:
    def fit(checkpoint: Checkpoint) -> Any:
        return made(name).fit(few, checkpoint=checkpoint)

    whole, stored = fit_and_saves(fit, 4)
    for content in stored:
        checkpoint = Checkpoint.load(content)
        resumed = fit(checkpoint)
        assert checkpoint.num_taken > 0
        assert (resumed.status_, resumed.penalty_) == (whole.status_, whole.penalty_)
        assert resumed.linear_choice_ == whole.linear_choice_
        assert largest_difference(resumed, whole, few) < MAKERS[name][1]
    # The last save is of the end, or nearly: little is done again.
    assert resumed.n_iter_ <= whole.n_iter_ + 20


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "changes", [{"random_state": 8}, {"column_transform": "sqrt"}, {"max_iter": 31}]
)
def test_the_checkpoint_of_another_fit_is_refused(
    name: str, changes: dict[str, Any], few: NDArray[np.float64]
) -> None:
    checkpoint = Checkpoint()
    stopped = made(name).fit(few, on_step=lambda _: True, checkpoint=checkpoint)
    assert stopped.status_ == "cancelled"
    with pytest.raises(UnusableCheckpointError, match="another table, options or seed"):
        made(name).set_params(**changes).fit(few, checkpoint=Checkpoint.load(checkpoint.dump()))


def test_the_checkpoint_of_another_method_is_refused(few: NDArray[np.float64]) -> None:
    checkpoint = Checkpoint()
    made("pseudo-likelihood").fit(few, on_step=lambda _: True, checkpoint=checkpoint)
    with pytest.raises(UnusableCheckpointError):
        made("em").fit(few, checkpoint=Checkpoint.load(checkpoint.dump()))


@pytest.mark.parametrize("imputation", ["gibbs", "mean"])
def test_a_search_over_all_rows_can_be_stopped_within(
    imputation: str, few: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As fits of large tables do, it reports within its steps.
    monkeypatch.setattr("vnce_engine.runtime.progress._WORK_PER_REPORT", 1)
    num_steps = 0

    def stop_at_the_third(_: object) -> bool:
        nonlocal num_steps
        num_steps += 1
        return num_steps == 3

    stopped = TruncatedGaussianPseudoLikelihood(
        linear="zero", imputation=imputation, random_state=7
    ).fit(few, on_step=stop_at_the_third)
    assert (stopped.status_, num_steps) == ("cancelled", 3)
    # Of a round of imputation nothing is kept before its end; a whole table's climb has a value.
    assert stopped.n_iter_ == {"gibbs": 0, "mean": 1}[imputation]
    assert np.isfinite(stopped.precision_).all()
