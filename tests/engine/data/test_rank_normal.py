"""A column's smooth map to normal scores by the ranks of its cells."""

import numpy as np
import pytest
from scipy.stats import halfnorm, kstest, norm

from vnce_engine.data.rank_normal import RankNormal
from vnce_engine.data.table_transform import TableTransform

RNG = np.random.default_rng(0)
COLUMNS = {
    "lognormal": np.exp(2 * RNG.standard_normal(400)),
    "counts": RNG.poisson(1.5, 400).astype(float),
    "zeros": np.maximum(RNG.standard_normal(400), 0),
    "two values": RNG.integers(0, 2, 400).astype(float),
    "far": 1e9 + RNG.standard_normal(400),
    "few": np.array([3.0, 1.0, 4.0, 1.5]),
}


@pytest.mark.parametrize(
    ("name", "is_half"),
    # Half a normal's map of a column far from 0 is too steep to invert to all digits.
    [
        (name, is_half)
        for name in COLUMNS
        for is_half in (False, True)
        if name != "far" or not is_half
    ],
)
def test_the_map_increases_and_inverts_within_the_cells_and_beyond(
    name: str, is_half: bool
) -> None:
    cells = COLUMNS[name]
    map_ = RankNormal.fit(cells, is_half=is_half)
    spread = cells.max() - cells.min()
    low = 0.0 if is_half else cells.min() - 100 * spread
    x = np.unique(np.concatenate([cells, np.linspace(low, cells.max() + 100 * spread, 501)]))
    y = map_.forward(x)
    assert np.isfinite(y).all()
    assert (np.diff(y) > 0).all()
    # Rounding of x, and that of y where the map is flat, which the slope magnifies.
    rounding = 1e-12 * (np.abs(x) + np.abs(y) / np.exp(map_.log_slope(x)))
    assert (np.abs(map_.inverse(y) - x) <= rounding + 1e-12).all()


@pytest.mark.parametrize("is_half", [False, True])
@pytest.mark.parametrize("name", ["lognormal", "counts"])
def test_the_slope_is_that_of_the_map_and_goes_on_over_knots(name: str, is_half: bool) -> None:
    map_ = RankNormal.fit(COLUMNS[name], is_half=is_half)
    x = np.concatenate([map_.x[1:], np.geomspace(0.05, 10 * map_.x[-1], 50)])
    step = 1e-6 * x
    for side in (-1, 1):
        difference = (map_.forward(x + side * step) - map_.forward(x)) / (side * step)
        # One-sided, so that its error is of the step times the curvature.
        assert np.log(difference) == pytest.approx(map_.log_slope(x), abs=1e-3)


@pytest.mark.parametrize("is_half", [False, True])
def test_scores_of_new_values_are_normal_or_half_of_it(is_half: bool) -> None:
    rng = np.random.default_rng(1)
    map_ = RankNormal.fit(np.exp(rng.standard_normal(20_000)), is_half=is_half)
    scores = map_.forward(np.exp(rng.standard_normal(5_000)))
    assert kstest(scores, halfnorm.cdf if is_half else norm.cdf).pvalue > 0.001


@pytest.mark.parametrize("power", [1, 3])
def test_half_scores_describe_new_values_nearly_as_well_as_the_truth(power: int) -> None:
    rng = np.random.default_rng(4)
    fitted, new = (np.abs(rng.standard_normal(n)) for n in (2_000, 50_000))
    map_ = RankNormal.fit(fitted**power, is_half=True)
    density = halfnorm.logpdf(map_.forward(new**power)) + map_.log_slope(new**power)
    truth = halfnorm.logpdf(new) - np.log(power * new ** (power - 1))
    # Of about 24 knots each costs half a nat over n rows, .006; a cube root has no slope at 0.
    assert 0 < (truth - density).mean() < 0.03


def test_equal_cells_have_one_score_and_gaps_none() -> None:
    cells = COLUMNS["counts"]
    scores = RankNormal.fit(cells, is_half=False).forward(np.append(cells, np.nan))
    assert np.isnan(scores[-1])
    for value in np.unique(cells):
        share = (cells < value).mean() + (cells == value).mean() / 2
        # So few values are all knots, at the middle of their ranks.
        assert scores[:-1][cells == value] == pytest.approx(norm.ppf(share))


def test_half_scores_begin_at_zero_and_have_no_negative_values() -> None:
    map_ = RankNormal.fit(COLUMNS["lognormal"], is_half=True)
    assert map_.forward(0.0) == 0
    with pytest.raises(ValueError, match=r"'rank-normal' of a truncated model needs .* got -1"):
        map_.forward([-1.0])


def test_columns_may_have_a_transform_each() -> None:
    X = np.random.default_rng(2).gamma(2.0, size=(50, 3))
    X[4, 1] = np.nan
    transform = TableTransform.fit(("none", "rank-normal", "sqrt"), X, may_be_negative=True)
    Y = transform.forward(X)
    np.testing.assert_array_equal(Y[:, 0], X[:, 0])
    np.testing.assert_array_equal(Y[:, 2], np.sqrt(X[:, 2]))
    ranks = RankNormal.fit(np.delete(X[:, 1], 4), is_half=False)
    np.testing.assert_array_equal(Y[:, 1], ranks.forward(X[:, 1]))
    row, column = np.nonzero(~np.isnan(X))
    np.testing.assert_allclose(
        transform.inverse(Y[row, column], column), X[row, column], rtol=1e-12
    )


def test_scores_below_a_range_stand_for_its_least_value() -> None:
    X = np.random.default_rng(2).gamma(2.0, size=(50, 3))
    names = ("none", "rank-normal", "sqrt")
    cells, columns = np.full(3, -1.5), np.arange(3)
    bounded = TableTransform.fit(names, X, may_be_negative=False).inverse(cells, columns)
    assert bounded.tolist() == [-1.5, 0, 0]
    whole_line = TableTransform.fit(names, X, may_be_negative=True).inverse(cells, columns)
    assert 0 < whole_line[1] < np.median(X[:, 1])
