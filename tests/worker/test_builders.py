import pytest

from service.jobs.specs.estimation import EstimationSpec
from vnce_engine import TruncatedGaussianNCE, TruncatedGaussianVNCE
from worker.builders import build_estimator

MODEL = {"kind": "truncated-gaussian", "linear": "free", "transform": "cbrt"}
COMMON = {
    "penalty_kind": "ridge",
    "noise_ratio": 7,
    "noise_draws": "random",
    "max_iter": 31,
    "tol": 0.01,
}


def spec_of(**estimator: object) -> EstimationSpec:
    return EstimationSpec.model_validate(
        {
            "kind": "estimation",
            "dataset_id": "dataset_1",
            "variables": ["a", "b"],
            "model": MODEL,
            "estimator": COMMON | {"preset": "default"} | estimator,
            "edge_threshold": 0.25,
            "censored": "refuse",
            "seed": 11,
            "tag": None,
        }
    )


def test_every_choice_of_a_vnce_spec_reaches_the_estimator() -> None:
    estimator = build_estimator(spec_of(kind="vnce", preset="paper", penalty=0.5))
    assert isinstance(estimator, TruncatedGaussianVNCE)
    assert estimator.get_params() == {
        "linear": "free",
        "transform": "cbrt",
        "preset": "paper",
        "penalty": 0.5,
        "edge_threshold": 0.25,
        "random_state": 11,
        **COMMON,
    }


def test_every_choice_of_an_nce_spec_reaches_the_estimator() -> None:
    estimator = build_estimator(spec_of(kind="nce", imputation="noise", penalty=0.5))
    assert isinstance(estimator, TruncatedGaussianNCE)
    assert estimator.get_params() == {
        "linear": "free",
        "transform": "cbrt",
        "imputation": "noise",
        "penalty": 0.5,
        "edge_threshold": 0.25,
        "random_state": 11,
        **COMMON,
    }


@pytest.mark.parametrize("penalty", ["auto", None, 2.0])
def test_a_penalty_arrives_as_the_engine_takes_it(penalty: object) -> None:
    built = build_estimator(spec_of(kind="vnce", penalty=penalty)).penalty
    assert built == penalty
    assert type(built) is type(penalty)
