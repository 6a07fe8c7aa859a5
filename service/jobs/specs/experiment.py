"""Experiments: the paper's and our own, each split into parts that the workers share."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from service.jobs.specs.base import DEFAULT_SEED, Seed, SpecModel, Tag
from service.jobs.vocabulary import (
    CoverageGraph,
    ExperimentScale,
    LinearChoice,
    RecoveryEstimator,
    SimulatedGraph,
)

Scale = Annotated[
    ExperimentScale,
    Field(
        description="`full`: as in the paper, which takes hours; `quick`: a small version of it, "
        "in two minutes on two cores. Other fields change single sizes of it."
    ),
]
Count = Annotated[int, Field(strict=True, ge=1, le=10_000)]


def _without_repeats(values: list[Any]) -> list[Any]:
    # Parts of equal words would have the same draws, and count twice.
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ValueError(f"{value} is listed twice.")
    return values


Distinct = AfterValidator(_without_repeats)


Graphs = Annotated[
    Annotated[list[SimulatedGraph], Field(min_length=1, max_length=2), Distinct] | None,
    Field(
        description="Graphs to draw from; null: the full version's, or fewer where the scale is "
        "`quick`."
    ),
]
SampleSizes = Annotated[
    Annotated[
        list[Annotated[int, Field(strict=True, ge=10, le=1_000_000)]],
        Field(min_length=1, max_length=20),
        Distinct,
    ]
    | None,
    Field(
        description="Sample sizes, from 10 to 1000000; null: the full version's, or fewer where "
        "the scale is `quick`."
    ),
]
Fractions = Annotated[
    Annotated[
        list[Annotated[float, Field(strict=True, ge=0, lt=1)]],
        Field(min_length=1, max_length=20),
        Distinct,
    ]
    | None,
    Field(
        description="Shares of missing cells, from 0 to below 1; null: the full version's, or "
        "fewer where the scale is `quick`."
    ),
]
DataSets = Annotated[
    Annotated[int, Field(strict=True, ge=1, le=1_000)] | None,
    Field(
        description="Data sets of each graph; null: the full version's, or fewer where the scale "
        "is `quick`."
    ),
]
Estimators = Annotated[
    Annotated[list[RecoveryEstimator], Field(min_length=1, max_length=50), Distinct] | None,
    Field(
        description="Estimators compared; null: the full version's, or fewer where the scale is "
        "`quick`."
    ),
]


class PosteriorToySpec(SpecModel):
    """Posteriors of the product-latent toy by variational inference and VNCE (Figures 1 and 2)."""

    name: Literal["posterior-toy"] = Field("posterior-toy", description="The experiment's name.")


class MixtureEmSpec(SpecModel):
    """E- and M-steps of a mixture of two normals, the objective never falling (Figure 3)."""

    name: Literal["mixture-em"] = Field("mixture-em", description="The experiment's name.")


class MixturePopulationSpec(SpecModel):
    """Error against sample size over many mixtures, by VNCE, NCE and likelihood (Figure 4)."""

    name: Literal["mixture-population"] = Field(
        "mixture-population", description="The experiment's name."
    )
    n_truths: Count | None = Field(
        None,
        description="True values drawn from [2, 6]; null: the full version's, or fewer "
        "where the scale is `quick`.",
    )
    sample_sizes: SampleSizes = None


class GraphRecoverySpec(SpecModel):
    """Edge recovery from incomplete tables of known network, by any estimators (Figure 5)."""

    name: Literal["graph-recovery"] = Field("graph-recovery", description="The experiment's name.")
    graphs: Graphs = None
    fractions: Fractions = None
    n_data_sets: DataSets = None
    estimators: Estimators = None


class CoverageSpec(SpecModel):
    """Coverage of 95 % intervals of edges, and the share of edges found that are false."""

    name: Literal["coverage"] = Field("coverage", description="The experiment's name.")
    graphs: Annotated[
        Annotated[list[CoverageGraph], Field(min_length=1, max_length=4), Distinct] | None,
        Field(
            description="Graphs to draw from; null: the full version's, or fewer where the scale "
            "is `quick`."
        ),
    ] = None
    linears: Annotated[
        Annotated[
            list[Literal[LinearChoice.ZERO, LinearChoice.FREE]],
            Field(min_length=1, max_length=2),
            Distinct,
        ]
        | None,
        Field(
            description="Linear terms of the tables: `zero`, or `free`, uniform on [-0.5, 1]; "
            "null: both. Fits choose theirs by held-out rows."
        ),
    ] = None
    sample_sizes: SampleSizes = None
    fractions: Fractions = None
    n_data_sets: DataSets = None
    n_variables: Annotated[int, Field(strict=True, ge=3, le=100)] = Field(
        10, description="Columns of each table, from 3 to 100."
    )


ExperimentChoice = Annotated[
    PosteriorToySpec | MixtureEmSpec | MixturePopulationSpec | GraphRecoverySpec | CoverageSpec,
    Field(discriminator="name"),
]


class ExperimentSpec(SpecModel):
    """An experiment, of the paper or our own; its parts become jobs of their own."""

    kind: Literal["experiment"] = Field("experiment", description="The job's kind.")
    experiment: ExperimentChoice = Field(description="Which, and what is changed about it.")
    scale: Scale = ExperimentScale.QUICK
    seed: Seed = DEFAULT_SEED
    tag: Tag = None


class ExperimentPartSpec(SpecModel):
    """One part of an experiment; made by the experiment's own job, never by a client."""

    kind: Literal["experiment-part"] = Field("experiment-part", description="The job's kind.")
    experiment: ExperimentChoice = Field(description="The experiment that it is part of.")
    scale: Scale = ExperimentScale.QUICK
    seed: Seed = DEFAULT_SEED
    part: int = Field(ge=0, description="Which part, from 0.")
    label: str = Field(description="What the part computes.")
    tag: Tag = None
