"""What a job is asked to do: the request as sent, and the same with every choice made.

The `…JobCreate` models are what a client posts, with defaults. The `…Spec` models are what is
stored, shown and handed to the worker: no defaults, every choice made.
"""

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, TypeAdapter
from typing_extensions import TypeAliasType

from service.jobs.specs.estimation import EstimationJobCreate, EstimationSpec
from service.jobs.specs.experiment import (
    ExperimentJobCreate,
    ExperimentPartSpec,
    ExperimentSpec,
)
from service.jobs.specs.mixture import MixtureEstimationJobCreate, MixtureEstimationSpec
from service.jobs.specs.scoring import ScoringJobCreate, ScoringSpec
from service.jobs.specs.simulation import SimulationJobCreate, SimulationSpec

_NETWORK, _MIXTURE = "network", "mixture"


def _model_of(estimation: Any) -> str:
    """Return which body an estimation has, by the kind of its model."""
    model = _field(estimation, "model")
    return _MIXTURE if _field(model, "kind") == _MIXTURE else _NETWORK


def _field(value: Any, name: str) -> Any:
    # Values come as documents when they are parsed, and as models when they are written.
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


# Named types, so that OpenAPI documents can refer to them.
EstimationCreate = TypeAliasType(
    "EstimationCreate",
    Annotated[
        Annotated[EstimationJobCreate, Tag(_NETWORK)]
        | Annotated[MixtureEstimationJobCreate, Tag(_MIXTURE)],
        Discriminator(_model_of),
        Field(description="Ask for an estimation; its model says what else belongs to the body."),
    ],
)
AnyEstimationSpec = TypeAliasType(
    "AnyEstimationSpec",
    Annotated[
        Annotated[EstimationSpec, Tag(_NETWORK)] | Annotated[MixtureEstimationSpec, Tag(_MIXTURE)],
        Discriminator(_model_of),
        Field(description="One estimation; its model says what else belongs to it."),
    ],
)
JobCreate = Annotated[
    EstimationCreate | SimulationJobCreate | ExperimentJobCreate | ScoringJobCreate,
    Field(discriminator="kind"),
]
JobSpec = Annotated[
    AnyEstimationSpec | SimulationSpec | ExperimentSpec | ExperimentPartSpec | ScoringSpec,
    Field(discriminator="kind"),
]

_SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


def spec_of(document: dict[str, Any]) -> JobSpec:
    """Return the specification that was stored as `document`."""
    return _SPEC.validate_python(document)
