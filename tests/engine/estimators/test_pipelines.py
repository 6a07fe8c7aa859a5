"""The estimators as steps of scikit-learn's pipelines and searches."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import vnce_engine
from vnce_engine import (
    GaussianEM,
    GaussianVNCE,
    TruncatedGaussianScoreMatching,
    TruncatedGaussianVNCE,
)

ESTIMATORS = [
    getattr(vnce_engine, name)
    for name in vnce_engine.__all__
    if hasattr(getattr(vnce_engine, name), "fit")
]
FAST = {
    "vnce": lambda: TruncatedGaussianVNCE(linear="zero", penalty=1.0, random_state=0),
    "score matching": lambda: TruncatedGaussianScoreMatching(max_iter=10, random_state=0),
    "gaussian vnce": lambda: GaussianVNCE(penalty=1.0, random_state=0),
    "em": lambda: GaussianEM(),
}


def frame(n: int = 80, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    common = rng.gamma(4.0, size=(n, 1))
    X = common + rng.gamma(2.0, size=(n, 3))
    X[rng.random(X.shape) < 0.15] = np.nan
    return pd.DataFrame(X, columns=["a", "b", "c"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(FAST))
def test_transform_imputes_and_names_its_columns(kind: str) -> None:
    X = frame()
    model = FAST[kind]().fit(X)
    np.testing.assert_array_equal(model.transform(X), model.impute(X))
    assert list(model.get_feature_names_out()) == ["a", "b", "c"]
    as_frame = model.set_output(transform="pandas").transform(X)
    assert list(as_frame.columns) == ["a", "b", "c"]
    assert not as_frame.isna().any(axis=None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(FAST))
def test_an_estimator_in_the_middle_of_a_pipeline_fills_what_passes(kind: str) -> None:
    X = frame()
    y = X.sum(axis=1).to_numpy()
    scaler = StandardScaler() if "gaussian" in kind or kind == "em" else MaxAbsScaler()
    pipeline = make_pipeline(scaler, FAST[kind](), LinearRegression()).fit(X, y)
    by_hand = FAST[kind]().fit(scaler.fit_transform(X))
    regression = LinearRegression().fit(by_hand.impute(scaler.transform(X)), y)
    np.testing.assert_allclose(
        pipeline.predict(X), regression.predict(by_hand.transform(scaler.transform(X))), rtol=1e-12
    )
    copy = clone(pipeline)
    np.testing.assert_allclose(copy.fit(X, y).predict(X), pipeline.predict(X), rtol=1e-12)


@pytest.mark.slow
def test_data_frames_pass_a_pipeline_with_their_columns_and_index() -> None:
    X = frame()
    X.index = pd.Index([f"sample {i}" for i in range(len(X))])
    pipeline = make_pipeline(MaxAbsScaler(), FAST["score matching"]()).set_output(
        transform="pandas"
    )
    filled = pipeline.fit_transform(X)
    assert list(pipeline.get_feature_names_out()) == list(filled.columns) == ["a", "b", "c"]
    assert filled.index.equals(X.index)
    observed = X.notna().to_numpy()
    scaled = MaxAbsScaler().fit_transform(X)
    np.testing.assert_array_equal(filled.to_numpy()[observed], scaled[observed])
    assert not filled.isna().any(axis=None)


def test_a_search_over_a_pipeline_refits_its_steps() -> None:
    X = frame()
    y = X.sum(axis=1).to_numpy()
    pipeline = make_pipeline(GaussianVNCE(random_state=0), LinearRegression())
    grid = {"gaussianvnce__penalty": [0.3, 3.0], "gaussianvnce__column_transform": ["sqrt"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_params_["gaussianvnce__column_transform"] == "sqrt"
    assert search.best_estimator_[0].column_transform_ == "sqrt"
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_parameter_hides_a_method(estimator: Any) -> None:
    parameters = estimator().get_params()
    assert "column_transform" in parameters
    assert not [name for name in parameters if callable(getattr(estimator, name, None))]
