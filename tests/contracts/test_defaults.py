"""What a request leaves out is what Python leaves out: both have the same defaults."""

import pytest

from service.jobs.model_kinds import list_estimator_kinds
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.vocabulary import ModelKind
from worker.jobs.builders import build_estimator

NETWORKS = [
    (model, kind.kind)
    for kind in list_estimator_kinds().items
    for model in kind.models
    if model != ModelKind.MIXTURE  # no estimator of its own in Python
]


@pytest.mark.parametrize(("model", "estimator"), NETWORKS)
def test_a_job_of_defaults_is_fitted_by_an_estimator_of_defaults(
    model: str, estimator: str
) -> None:
    request = {"kind": "estimation", "dataset_id": "ds_1", "estimator": {"kind": estimator}}
    spec = EstimationSpec.model_validate(request | {"model": {"kind": model}})
    built = build_estimator(spec)
    assert built.get_params() == type(built)().get_params()
