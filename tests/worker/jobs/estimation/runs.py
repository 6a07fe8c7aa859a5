"""Estimations as tests run them, and what they leave."""

from collections.abc import Callable
from io import BytesIO

import numpy as np

from service.results.outcome import Outcome
from vnce_engine.runtime.reports import FitStep
from worker.jobs.estimation import EstimationRequest

MakeRequest = Callable[..., EstimationRequest]
RING = [["a", "体重"], ["体重", "=c"], ["=c", "d d"], ["a", "d d"]]


def ignore(step: FitStep) -> None:
    pass


def files_of(outcome: Outcome) -> dict[str, bytes]:
    return {artefact.name: artefact.content for artefact in outcome.artefacts}


def load(outcome: Outcome, name: str) -> np.ndarray:
    return np.load(BytesIO(files_of(outcome)[name]))
