"""What an estimator says becomes a document without a number that JSON lacks."""

import math
from collections.abc import Callable

import pytest

from vnce_engine.inference.result import LinearEvidence
from worker.artefacts.fitted import FittedNetwork
from worker.jobs.builders import build_estimator
from worker.jobs.estimation import EstimationRequest
from worker.jobs.network_document import encode


@pytest.mark.parametrize("gain", [math.nan, math.inf, 0.25])
def test_evidence_that_is_not_finite_is_null_and_says_what_was_done(
    make_request: Callable[..., EstimationRequest], gain: float
) -> None:
    request = make_request()
    estimator = build_estimator(request.spec).fit(request.table)
    estimator.linear_evidence_ = LinearEvidence(gain, abs(gain), "free if it gains")
    fitted = FittedNetwork.of(
        request.spec, "small.csv", estimator, request.table, texts=None, truth=None
    )
    document = encode(
        fitted, request.dataset, {}, [], fit_seconds=0.0, export_seconds=0.0, resumed=False
    )
    evidence = document.linear.evidence
    assert evidence is not None
    assert evidence.gain == evidence.standard_error == (gain if math.isfinite(gain) else None)
    assert ("was not finite" in evidence.rule) == (not math.isfinite(gain))
