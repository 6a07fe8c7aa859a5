"""Columns that are functions of others are found and named, and others are not."""

import numpy as np
import pandas as pd
import pytest

from vnce_engine import GaussianVNCE, TruncatedGaussianVNCE
from vnce_engine.data.collinear import Combination, collinear_pairs, combinations


def columns(n: int = 200, d: int = 4) -> np.ndarray:
    return np.random.default_rng(2).gamma(3.0, size=(n, d))


def with_holes(X: np.ndarray, share: float = 0.1) -> np.ndarray:
    holes = np.random.default_rng(5).random(X.shape) < share
    return np.where(holes, np.nan, X)


@pytest.mark.parametrize("factor", [-2.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e7])
def test_a_column_in_other_units_is_a_pair_also_with_holes(factor: float, shift: float) -> None:
    X = columns()
    X = with_holes(np.column_stack([X, factor * X[:, 1] + shift]))
    assert collinear_pairs(X) == [(1, 4)]


@pytest.mark.parametrize(("noise", "found"), [(0.012, True), (0.016, False)])
def test_pairs_are_those_beyond_the_stated_correlation(noise: float, found: bool) -> None:
    # 1 - r² of a and a + noise e is noise² for small noise, and 2e-4 at r = .9999, noise = .0141;
    # a sample of 20,000 rows has it to 1 %, and noise² is 28 % off on either side.
    rng = np.random.default_rng(0)
    a, e = rng.normal(size=(2, 20_000))
    X = np.column_stack([a, a + noise * e])
    assert bool(collinear_pairs(X)) is found


def test_few_common_rows_are_no_evidence() -> None:
    X = columns(40, 2)
    X[9:20, 0] = np.nan
    X[20:, 1] = np.nan
    X[:9, 1] = X[:9, 0]
    assert collinear_pairs(X) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_column_that_is_constant_where_another_is_observed_is_no_pair(seed: int) -> None:
    # What is left of its variance there is rounding, and any correlation may come out.
    X = np.random.default_rng(seed).gamma(3.0, size=(200, 10))
    X[:40, 5:] = X[0, 5:]
    X[40:, :5] = np.nan
    assert collinear_pairs(X) == []


def test_a_pair_is_found_where_the_common_rows_differ_little_beside_others() -> None:
    X = np.full((200, 2), np.nan)
    rng = np.random.default_rng(3)
    X[:50, 0] = 1000 + rng.normal(size=50)
    X[:50, 1] = 2 * X[:50, 0] - 7
    X[50:120, 0], X[120:, 1] = rng.normal(0, 1000, size=70), rng.normal(0, 1000, size=80)
    assert collinear_pairs(X) == [(0, 1)]


def test_a_total_is_a_combination_of_its_parts_and_of_nothing_else() -> None:
    X = columns()
    X = with_holes(np.column_stack([X, X[:, 0] + 2 * X[:, 2] + 5]))
    assert combinations(X) == [Combination(4, [0, 2])]
    assert collinear_pairs(X) == []


def test_each_of_several_combinations_is_found() -> None:
    X = columns(300, 5)
    X = np.column_stack([X, X[:, 0] - X[:, 1], X[:, 2] + X[:, 3], np.ones(300)])
    assert combinations(X) == [Combination(5, [0, 1]), Combination(6, [2, 3])]


def test_few_complete_rows_are_no_evidence() -> None:
    X = columns(9, 4)
    X[:, 3] = X[:, 0] + X[:, 1]
    assert combinations(X) == []


@pytest.mark.parametrize(("num_different", "found"), [(9, False), (10, True)])
def test_repeated_rows_are_evidence_once(num_different: int, found: bool) -> None:
    X = columns(num_different, 4)
    X[:, 3] = X[:, 0] + X[:, 1]
    assert bool(combinations(np.repeat(X, 7, axis=0))) is found


def test_long_tables_are_judged_in_parts() -> None:
    X = columns(40_000, 3)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    assert combinations(X) == [Combination(3, [0, 1])]
    X[-1, 3] += 1e4  # one row says otherwise
    assert combinations(X) == []


def test_a_fit_warns_of_them_by_name_and_of_duplicates_once() -> None:
    X = columns()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["total"] = frame["a"] + frame["b"] + frame["c"]
    frame["fahrenheit"] = 1.8 * frame["d"] + 32
    frame["again"] = frame["a"]
    model = TruncatedGaussianVNCE(linear="zero", penalty=1.0, random_state=0, max_iter=3).fit(frame)
    warned = {warning.code: warning for warning in model.warnings_}
    assert warned["linearly-dependent"].columns == ("a", "b", "c", "total")
    assert "total of a, b, c" in warned["linearly-dependent"].message
    assert warned["collinear-columns"].columns == ("d", "fahrenheit")
    assert warned["duplicate-columns"].columns == ("a", "again")


def test_a_total_of_its_parts_is_told_also_where_a_transform_bends_it() -> None:
    X = columns()
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    model = TruncatedGaussianVNCE(column_transform="cbrt", penalty=1.0, max_iter=3).fit(X)
    (told,) = (warning for warning in model.warnings_ if warning.code == "linearly-dependent")
    assert told.columns == ("column 0", "column 1", "column 4")
    assert "before the transform" in told.message


def test_independent_columns_are_not_warned_of() -> None:
    model = GaussianVNCE(penalty=1.0, random_state=0, max_iter=3).fit(with_holes(columns()))
    codes = {warning.code for warning in model.warnings_}
    assert codes.isdisjoint({"linearly-dependent", "collinear-columns"})
