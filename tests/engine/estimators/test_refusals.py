"""Tables, columns and parameters that the estimators refuse, by name and with the rule."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.engine.estimators.quick_fits import ESTIMATORS, QUICK, table
from vnce_engine import TruncatedGaussianVNCE


@pytest.mark.parametrize("seed", [-1, 1.5, True, "x", [1, 2]])
def test_a_seed_that_is_none_is_refused_by_its_name(seed: Any) -> None:
    with pytest.raises(ValueError, match="`random_state` must be"):
        TruncatedGaussianVNCE(**{**QUICK, "random_state": seed}).fit(table())


def spoiled(kind: str) -> pd.DataFrame:
    frame = pd.DataFrame(table(), columns=list("abcd"))
    frame["b"] = {
        "negative": frame["b"].where(frame.index != 7, -0.5),
        "infinite": frame["b"].where(frame.index != 7, np.inf),
        "constant": frame["b"].where(frame["b"].isna(), 3.0),
        "empty": np.nan,
        "huge": frame["b"] * 1e160,
        "tiny": frame["b"] * 1e-160,
    }[kind]
    return frame


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("negative", "Negative values"),
        ("infinite", "Infinite values"),
        ("constant", "Constant column"),
        ("empty", "No observed value"),
        ("huge", "Largest value beyond"),
        ("tiny", "Largest value beyond"),
    ],
)
def test_columns_that_cannot_be_used_are_named(estimator: Any, kind: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rf"{rule} .*: b$"):
        estimator(**QUICK).fit(spoiled(kind))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"linear": "yes"}, "`linear` must be one of"),
        ({"column_transform": "log"}, "`column_transform` must be one of"),
        ({"penalty": -1.0}, "`penalty` must be"),
        ({"penalty": np.inf}, "`penalty` must be"),
        ({"penalty_kind": "lasso"}, "`penalty_kind` must be one of"),
        ({"noise_ratio": 0}, "`noise_ratio` must be"),
        ({"noise_draws": "halton"}, "`noise_draws` must be one of"),
        ({"max_iter": 0}, "`max_iter` must be"),
        ({"tol": 0.0}, "`tol` must be"),
        ({"edge_threshold": -0.1}, "`edge_threshold` must be"),
        ({"fdr": 1.5}, "`fdr` must be a number between 0 and 1"),
        ({"fdr": 0}, "`fdr` must be a number between 0 and 1"),
        ({"fdr_method": "holm"}, "`fdr_method` must be one of"),
        ({"preset": "fast"}, "`preset` must be one of"),
        ({"noise_scale": 1e-300}, "`noise_scale` must be a number from 0.001 to 1000, got 1e-300"),
        ({"noise_scale": 1e300}, "`noise_scale` must be a number from 0.001 to 1000"),
        ({"noise_scale": np.inf}, "`noise_scale` must be a number from 0.001 to 1000, got inf"),
        ({"selection": "aic"}, "`selection` must be one of"),
        ({"ebic_gamma": 1.5}, "`ebic_gamma` must be a number from 0 to 1"),
        ({"n_subsamples": 7}, "`n_subsamples` must be an even number"),
        ({"inclusion_threshold": 0.5}, "`inclusion_threshold` must be a number from 0.6 to 1"),
        ({"max_false_edges": -1.0}, "`max_false_edges` must be positive"),
        ({"penalties": [0.3]}, "`penalties` needs `penalty='auto'`, got 0.5"),
        ({"penalties": [], "penalty": "auto"}, "`penalties` must be None or positive numbers"),
        ({"penalties": [0.3, -1], "penalty": "auto"}, "`penalties` must be positive"),
        ({"selection": "ebic"}, "`selection='ebic'` needs `penalty_kind='l1'`"),
        (
            {"selection": "stability", "penalty_kind": "l1"},
            "`selection='stability'` needs `penalty='auto'`, got 0.5",
        ),
        (
            {
                "selection": "stability",
                "penalty_kind": "l1",
                "penalty": "auto",
                "n_subsamples": 4,
                "inclusion_threshold": 0.6,
            },
            "no bound on the number of false edges with `n_subsamples=4`; increase it",
        ),
        ({"preset": "paper", "penalty_kind": "l1"}, "`penalty_kind='l1'` needs `preset='default'`"),
        ({"preset": "paper", "noise_scale": 2.0}, "`noise_scale=2.0` needs `preset='default'`"),
    ],
)
def test_wrong_parameters_are_named_with_their_rule(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TruncatedGaussianVNCE(**{**QUICK, **options}).fit(table())


def test_one_column_is_refused() -> None:
    with pytest.raises(ValueError, match="minimum of 2"):
        TruncatedGaussianVNCE(**QUICK).fit(table()[:, :1])


def test_too_few_rows_are_refused() -> None:
    X = table()
    X[5:] = np.nan
    with pytest.raises(ValueError, match="at least 6 rows with an observed value, got 5"):
        TruncatedGaussianVNCE(**QUICK).fit(X)


@pytest.mark.parametrize("penalty", [None, 0.001])
def test_a_fit_with_more_parameters_than_rows_needs_a_penalty(penalty: float | None) -> None:
    # d (d + 1) / 2 + d + 1 = 15 with 4 columns.
    with pytest.raises(ValueError, match=r"`penalty` must be .* 15 parameters and 15 rows"):
        TruncatedGaussianVNCE(penalty=penalty).fit(table(n=15, fraction=0.0))
    TruncatedGaussianVNCE(penalty=None, max_iter=2).fit(table(n=60, fraction=0.0))


def test_a_grid_too_weak_for_more_parameters_than_rows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`penalties` must be at least 0\.03 with 15 parameters"):
        TruncatedGaussianVNCE(penalties=[1.0, 0.01]).fit(table(n=15, fraction=0.0))


def test_the_papers_preset_refuses_observed_zeros_by_column() -> None:
    frame = pd.DataFrame(table(), columns=list("abcd"))
    frame.loc[[2, 4], "c"] = 0.0
    with pytest.raises(ValueError, match=r"zeros in c \(2\)"):
        TruncatedGaussianVNCE(preset="paper").fit(frame)
    TruncatedGaussianVNCE(**QUICK).fit(frame)
