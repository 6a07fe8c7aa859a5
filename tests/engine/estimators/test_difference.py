"""Networks of two tables, or of two groups of rows: what may be compared, and what comes of it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from vnce_engine import (
    GaussianEM,
    GaussianVNCE,
    TruncatedGaussianVNCE,
    difference,
    group_difference,
)
from vnce_engine.estimators.difference import fit_permutations, held
from vnce_engine.inference.differences import NetworkPair
from vnce_engine.inference.resamples import Failure
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.progress import FitCancelledError
from vnce_engine.runtime.reports import FitStep
from vnce_engine.simulate import mask_completely_at_random

FloatArray = NDArray[np.float64]
NAMES = ["a", "b", "c", "d"]


def chain(num_rows: int, seed: int, link: float = 0.0) -> FloatArray:
    """Return rows of normal columns, of which the first two are linked."""
    rng = np.random.default_rng(seed)
    precision = np.eye(4)
    precision[0, 1] = precision[1, 0] = -link
    precision[2, 3] = precision[3, 2] = -0.3
    return rng.multivariate_normal(np.full(4, 5.0), np.linalg.inv(precision), num_rows)


def fit(X: Any, **options: Any) -> GaussianVNCE:
    return GaussianVNCE(penalty=0.3, penalty_kind="ridge", **options).fit(X)


@pytest.fixture(scope="module")
def table() -> FloatArray:
    return mask_completely_at_random(chain(150, 0, 0.5), 0.1, np.random.default_rng(1))


@pytest.fixture(scope="module")
def other() -> FloatArray:
    return chain(120, 2)


@pytest.mark.slow
def test_equal_tables_do_not_differ(table: FloatArray) -> None:
    found = difference(fit(table), fit(table.copy()))
    np.testing.assert_array_equal(found.z, 0.0)
    both = np.vstack([table, table])
    groups = group_difference(fit(both), both, np.repeat(["x", "y"], len(table)), 0)
    np.testing.assert_array_equal(groups.z, 0.0)
    np.testing.assert_array_equal(groups.q_value, 1.0)


@pytest.mark.slow
def test_a_difference_has_the_other_sign_the_other_way_round(
    table: FloatArray, other: FloatArray
) -> None:
    first, second = fit(table), fit(other)
    np.testing.assert_array_equal(difference(first, second).z, -difference(second, first).z)
    both = np.vstack([table, other])
    model = fit(both)
    labels = np.repeat([0, 1], [len(table), len(other)])
    one, swapped = (group_difference(model, both, groups, 0) for groups in (labels, 1 - labels))
    np.testing.assert_array_equal(one.z, -swapped.z)
    np.testing.assert_array_equal(one.debiased, swapped.debiased[::-1])


def test_the_difference_is_of_the_debiased_estimates(table: FloatArray, other: FloatArray) -> None:
    first, second = fit(table), fit(other)
    found = difference(first, second)
    edges = ({(e.source, e.target): e for e in one.edges_} for one in (first, second))
    of_first, of_second = edges
    for k, pair in enumerate(map(tuple, found.pairs)):
        one, two = of_first[pair], of_second[pair]
        assert found.difference[k] == one.debiased - two.debiased
        assert found.standard_error[k] == np.hypot(one.standard_error, two.standard_error)


@pytest.mark.slow
def test_columns_are_matched_by_their_names(table: FloatArray, other: FloatArray) -> None:
    first = fit(pd.DataFrame(table, columns=NAMES))
    frame = pd.DataFrame(other, columns=NAMES)
    shuffled = frame[["c", "a", "d", "b"]]
    np.testing.assert_allclose(
        difference(first, fit(shuffled)).difference, difference(first, fit(frame)).difference,
        # Both fits are to the same end within their tolerance, of noise in another order.
        atol=0.05,
    )  # fmt: skip
    same = fit(pd.DataFrame(table, columns=NAMES)[["d", "c", "b", "a"]])
    assert np.abs(difference(first, same).z).max() < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: fit(frame.rename(columns={"a": "e"})), "columns .* lacks: a, e"),
        (lambda frame: fit(frame, column_transform="sqrt"), "transforms differ: 'none' and 'sqrt'"),
        (lambda frame: TruncatedGaussianVNCE(penalty=1.0).fit(frame), "models differ: GaussianV"),
        (lambda frame: GaussianEM(penalty=0.1).fit(frame), "second network has no standard errors"),
        (lambda frame: fit(frame.to_numpy()[:, :3]), "have 4 and 3 columns"),
    ],
    ids=["columns", "transform", "model", "errors", "width"],
)
def test_what_is_not_comparable_is_refused_by_what_differs(
    table: FloatArray, change: Any, message: str
) -> None:
    frame = pd.DataFrame(table, columns=NAMES)
    with pytest.raises(ValueError, match=message):
        difference(fit(frame), change(frame))


@pytest.mark.slow
def test_linear_terms_must_be_alike(table: FloatArray) -> None:
    free, zero = (
        TruncatedGaussianVNCE(penalty=1.0, penalty_kind="ridge", linear=linear).fit(table)
        for linear in ("free", "zero")
    )
    with pytest.raises(ValueError, match="linear terms differ: 'free' and 'zero'"):
        difference(free, zero)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0] * 100 + [1] * 100 + [2] * 70, "two different labels, got 3: 0, 1, 2"),
        ([0] * 270, "two different labels, got 1"),
        ([0] * 265 + [1] * 5, "at least 6 rows with an observed value, got 5"),
        ([0] * 262 + [1] * 8 + [None] * 0, "Constant column|Fewer than"),
        ([0, 1], "a label for each of 270 rows"),
    ],
)
def test_groups_that_cannot_be_compared_are_refused(
    table: FloatArray, other: FloatArray, groups: Any, message: str
) -> None:
    both = np.vstack([table, other])
    both[-8:, 0] = 3.0
    with pytest.raises(ValueError, match=message):
        group_difference(fit(both), both, groups)


@pytest.mark.slow
def test_rows_without_a_label_are_in_no_group(table: FloatArray, other: FloatArray) -> None:
    both = np.vstack([table, other, chain(30, 9)])
    model = fit(both)
    groups = np.array(["x"] * len(table) + ["y"] * len(other) + [None] * 30, dtype=object)
    labelled = group_difference(model, both[:-30], groups[:-30], 2)
    np.testing.assert_array_equal(group_difference(model, both, groups, 2).z, labelled.z)


@pytest.mark.slow
def test_a_number_stands_for_one_permutation_in_any_company(
    table: FloatArray, other: FloatArray
) -> None:
    model = fit(np.vstack([table, other]))
    fits = (held(model, "none"),) * 2
    together = fit_permutations(fits, (table, other), range(3), 7)
    [alone] = fit_permutations(fits, (table, other), [2], 7)
    assert isinstance(alone, NetworkPair)
    np.testing.assert_array_equal(alone.debiased, together[2].debiased)
    assert not np.array_equal(alone.debiased, together[1].debiased)


@pytest.mark.slow
def test_permutations_that_cannot_be_fitted_have_a_cause() -> None:
    # 13 rows of each table know of the first column, and 12 must: most permutations leave one of
    # the two with fewer.
    first, second = chain(150, 0), chain(120, 2)
    first[13:, 0] = second[13:, 0] = np.nan
    fits = (held(fit(np.vstack([first, second])), "none").set_params(min_observed=12),) * 2
    outcomes = fit_permutations(fits, (first, second), range(6), 1)
    assert isinstance(outcomes[0], NetworkPair)
    failed = [one for one in outcomes if isinstance(one, Failure)]
    assert failed
    assert all(one.cause.startswith("refused: Fewer than 12") for one in failed)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_where_it_was(table: FloatArray, other: FloatArray) -> None:
    model = fit(np.vstack([table, other]))
    fits, saves = (held(model, "none"),) * 2, []

    def stop_late(step: FitStep) -> bool:
        saves.append(step.checkpoint.dump())
        return step.fraction > 0.7

    with pytest.raises(FitCancelledError):
        fit_permutations(fits, (table, other), range(2), 7, stop_late)
    resumed = Checkpoint.load(saves[-1])
    found = fit_permutations(fits, (table, other), range(2), 7, checkpoint=resumed)
    assert resumed.num_taken >= 2
    whole = fit_permutations(fits, (table, other), range(2), 7)
    np.testing.assert_array_equal(found[0].debiased, whole[0].debiased)
    np.testing.assert_allclose(found[1].debiased, whole[1].debiased, atol=1e-3)


@pytest.mark.slow
def test_networks_that_differ_are_found_and_where(table: FloatArray) -> None:
    # Of 400 rows each a partial correlation of .5 has a standard error of .04, a z near 10.
    both = np.vstack([chain(400, 5, 0.5), chain(400, 6)])
    groups = np.repeat(["linked", "not"], 400)[::-1]  # the first group is "linked", rows 400 on
    found = group_difference(fit(both), both, groups, n_permutations=19)
    assert found.n_ok == 19
    # No permutation differs as much: the least p-value there is.
    assert found.largest.p_value == found.sum_of_squares.p_value == 1 / 20
    assert found.q_value.argmin() == 0
    assert found.q_value[0] < 1e-6
    assert found.difference[0] == pytest.approx(-0.5, abs=5 * found.standard_error[0])


@pytest.mark.slow
def test_equal_networks_are_rarely_found_to_differ() -> None:
    # 60 pairs of tables of one network: 360 pairs of columns at a level of .05.
    num_tables = 60
    p_values = np.array(
        [
            difference(fit(chain(200, 100 + k, 0.4)), fit(chain(200, 500 + k, 0.4))).p_value
            for k in range(num_tables)
        ]
    )
    found = int((p_values <= 0.05).sum())
    # If all were independent, more than this many were found once in 10,000 runs.
    assert found <= binom.isf(1e-4, p_values.size, 0.05)
    assert found >= binom.isf(1 - 1e-4, p_values.size, 0.05)


@pytest.mark.slow
def test_permutations_need_the_tables(table: FloatArray, other: FloatArray) -> None:
    first, second = fit(table), fit(other)
    with pytest.raises(ValueError, match="`n_permutations` needs `tables`"):
        difference(first, second, n_permutations=3)
    found = difference(first, second, (table, other), n_permutations=3)
    assert (found.n_requested, found.n_ok) == (3, 3)
    assert found.largest.p_value in (0.25, 0.5, 0.75, 1.0)
