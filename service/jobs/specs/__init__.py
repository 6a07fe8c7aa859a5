"""What a job is asked to do: one class a specification.

A client posts it with some choices left to their defaults. Planning fills in those that hang on
the data set or on chance, and the same class is stored, shown and handed to the worker.
"""

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, TypeAdapter
from typing_extensions import TypeAliasType

from service.jobs.specs.base import STORED
from service.jobs.specs.bootstrap import BootstrapPartSpec, BootstrapSpec
from service.jobs.specs.comparison import ComparisonPartSpec, ComparisonSpec
from service.jobs.specs.difference import DifferencePartSpec, DifferenceSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.experiment import ExperimentPartSpec, ExperimentSpec
from service.jobs.specs.mixture import MixtureEstimationSpec
from service.jobs.specs.scoring import ScoringSpec
from service.jobs.specs.simulation import SimulationSpec

_NETWORK, _MIXTURE = "network", "mixture"


def _model_of(estimation: Any) -> str:
    """Return which body an estimation has, by the kind of its model."""
    model = _field(estimation, "model")
    return _MIXTURE if _field(model, "kind") == _MIXTURE else _NETWORK


def _field(value: Any, name: str) -> Any:
    # Values come as documents when they are parsed, and as models when they are written.
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


# A named type, so that OpenAPI documents can refer to it.
AnyEstimationSpec = TypeAliasType(
    "AnyEstimationSpec",
    Annotated[
        Annotated[EstimationSpec, Tag(_NETWORK)] | Annotated[MixtureEstimationSpec, Tag(_MIXTURE)],
        Discriminator(_model_of),
        Field(description="An estimation; its model says what else belongs to it."),
    ],
)
JobCreate = Annotated[
    AnyEstimationSpec
    | SimulationSpec
    | ExperimentSpec
    | ScoringSpec
    | BootstrapSpec
    | ComparisonSpec
    | DifferenceSpec,
    Field(discriminator="kind"),
]
JobSpec = Annotated[
    AnyEstimationSpec
    | SimulationSpec
    | ExperimentSpec
    | ExperimentPartSpec
    | ScoringSpec
    | BootstrapSpec
    | BootstrapPartSpec
    | ComparisonSpec
    | ComparisonPartSpec
    | DifferenceSpec
    | DifferencePartSpec,
    Field(discriminator="kind"),
]

_SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


def spec_of(document: dict[str, Any]) -> JobSpec:
    """Return the specification that was stored as `document`, by this release or an earlier one."""
    return _SPEC.validate_python(document, extra="ignore", context=STORED)
