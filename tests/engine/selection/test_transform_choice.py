"""The transform that describes held-out rows best."""

from typing import Any

import numpy as np
import pytest

from tests.engine.estimators.quick_fits import QUICK
from vnce_engine import FitStatus, FitStep, GaussianEM, TruncatedGaussianVNCE
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)


def table(n: int = 600, d: int = 5) -> np.ndarray:
    """Return rows of a truncated Gaussian, complete."""
    rng = np.random.default_rng(3)
    return sample_truncated_gaussian(ring_precision(d, rng), n, rng)


def normal_table(n: int = 600, d: int = 5) -> np.ndarray:
    rng = np.random.default_rng(3)
    return 4 + rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))


def blanked(X: np.ndarray) -> np.ndarray:
    return mask_completely_at_random(X, 0.2, np.random.default_rng(5))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transform", "distort"),
    [
        ("none", lambda x: x),
        ("sqrt", lambda y: y**2),
        ("cbrt", lambda y: y**3),
        # Columns of a few units, so that it is not nearly linear.
        ("log1p", lambda y: np.expm1(3 * y)),
    ],
)
def test_the_transform_that_undoes_a_distortion_is_chosen(transform: str, distort: Any) -> None:
    X = blanked(distort(table()))
    model = TruncatedGaussianVNCE(column_transform="auto", **QUICK).fit(X)
    assert model.column_transform_ == transform
    evidence = {str(step.transform): step for step in model.transform_evidence_}
    assert evidence[transform].standard_error == 0
    for name in ("none", "sqrt", "cbrt", "log1p", "rank-normal"):
        if name != transform:
            gap = evidence[transform].log_density - evidence[name].log_density
            assert gap > evidence[name].standard_error
    fixed = TruncatedGaussianVNCE(column_transform=transform, **QUICK).fit(X)
    np.testing.assert_array_equal(fixed.precision_, model.precision_)


def test_rank_normal_is_chosen_where_no_other_makes_columns_normal() -> None:
    X = normal_table()
    X = blanked(np.sign(X - 4) * (X - 4) ** 4)
    model = GaussianEM(column_transform="auto").fit(X)
    assert model.column_transform_ == "rank-normal"
    # Of columns that may be negative no others can be compared.
    assert [step.transform for step in model.transform_evidence_] == ["none", "rank-normal"]


def test_each_column_has_its_own_where_that_is_clearly_better() -> None:
    X = np.abs(normal_table())
    X[:, 0], X[:, 1] = X[:, 0] ** 3, np.exp(2 * X[:, 1])
    model = GaussianEM(column_transform="auto").fit(blanked(X))
    chosen = model.column_transform_
    assert isinstance(chosen, list)
    assert chosen[0] == "cbrt"
    assert "none" in chosen[2:]
    (step,) = (step for step in model.transform_evidence_ if step.chosen)
    assert step.transform == tuple(chosen)
    others = [other for other in model.transform_evidence_ if other is not step]
    best = max(others, key=lambda other: other.log_density)
    assert step.log_density - best.log_density > 2 * step.standard_error > 0
    # So that resamples have them, too.
    again = model.with_choices(model.choices()).fit(blanked(X))
    assert again.column_transform == chosen
    np.testing.assert_array_equal(again.precision_, model.precision_)
    assert again.transform_evidence_ == []


def test_the_held_out_density_is_that_of_score_samples() -> None:
    X = blanked(np.exp(normal_table(n=900)))
    model = GaussianEM(column_transform="auto").fit(X)
    rng = np.random.default_rng(8)
    train, test = np.split(rng.permutation(len(X)), [600])
    for step in model.transform_evidence_:
        own = GaussianEM(column_transform=step.transform).fit(X[train])
        density = own.score_samples(X[test])
        # Rows of both are a third of the table; the standard error of their means' difference.
        error = float(np.sqrt(density.var() / 300 + density.var() / 900))
        assert step.log_density == pytest.approx(density.mean(), abs=4 * error)


def test_many_zeros_do_not_make_a_density_infinite() -> None:
    X = np.maximum(normal_table() - 4, 0)
    model = GaussianEM(column_transform="auto").fit(X)
    assert all(np.isfinite(step.log_density) for step in model.transform_evidence_)


@pytest.mark.slow
def test_more_columns_than_rows_have_a_choice_too() -> None:
    X = np.exp(np.random.default_rng(0).standard_normal((16, 18)))
    for estimator in (GaussianEM(penalty=0.5), TruncatedGaussianVNCE(**QUICK)):
        model = estimator.set_params(column_transform="auto").fit(X)
        density = {str(step.transform): step.log_density for step in model.transform_evidence_}
        assert np.isfinite(list(density.values())).all()
        assert density["log1p"] > density["none"]


def test_a_column_that_hardly_varies_is_named() -> None:
    X = table(n=60)
    X[:, 2] = 1.0
    X[0, 2] = 2.0
    with pytest.raises(ValueError, match=r"different values of every column .*: column 2"):
        GaussianEM(column_transform="auto").fit(X)


def test_choosing_is_a_stage_of_its_own_and_can_be_cancelled() -> None:
    stages: list[tuple[str, float]] = []

    def note(step: FitStep) -> None:
        stages.append((step.stage, step.fraction))
        assert step.stage != "transform" or step.checkpoint is None

    GaussianEM(column_transform="auto").fit(table(n=100), on_step=note)
    assert stages[0][0] == "transform"
    assert stages[-1][0] != "transform"
    fractions = [fraction for _, fraction in stages]
    assert fractions == sorted(fractions)
    assert fractions[-1] > 0.3

    model = TruncatedGaussianVNCE(column_transform="auto", **QUICK)
    model.fit(table(n=100), on_step=lambda step: step.stage == "transform" and step.fraction > 0.1)
    assert model.status_ is FitStatus.CANCELLED
    assert model.transform_evidence_ == []


@pytest.mark.parametrize(
    ("given", "message"),
    [("power", "`column_transform` must be"), (["none"], "one for each of 5 columns"), (3, "name")],
)
def test_other_transforms_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GaussianEM(column_transform=given).fit(table(n=60))
