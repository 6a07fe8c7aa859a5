"""What a job is asked to do: the request as sent, and the same with every choice made.

The `…JobCreate` models are what a client posts, with defaults. The `…Spec` models are what is
stored, shown and handed to the worker: no defaults, every choice made.
"""

from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from service.jobs.specs.estimation import EstimationJobCreate, EstimationSpec
from service.jobs.specs.experiment import (
    ExperimentJobCreate,
    ExperimentPartSpec,
    ExperimentSpec,
)
from service.jobs.specs.scoring import ScoringJobCreate, ScoringSpec
from service.jobs.specs.simulation import SimulationJobCreate, SimulationSpec

JobCreate = Annotated[
    EstimationJobCreate | SimulationJobCreate | ExperimentJobCreate | ScoringJobCreate,
    Field(discriminator="kind"),
]
JobSpec = Annotated[
    EstimationSpec | SimulationSpec | ExperimentSpec | ExperimentPartSpec | ScoringSpec,
    Field(discriminator="kind"),
]

_SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


def spec_of(document: dict[str, Any]) -> JobSpec:
    """Return the specification that was stored as `document`."""
    return _SPEC.validate_python(document)
