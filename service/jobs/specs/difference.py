"""Differences: two estimated networks, or those of two groups of a table's rows, in parts."""

from typing import Annotated, Literal

from pydantic import Field

from service.jobs.specs.base import DEFAULT_SEED, Seed, SpecModel, Tag, VariableName

MOST_PERMUTATIONS = 2_000
# Of groups, unless another number is asked for: the least p-value is .005.
PERMUTATIONS_OF_GROUPS = 199

FirstId = Annotated[
    str,
    Field(
        description="Identifier of an estimation that has succeeded: the first network, or that of "
        "both groups together, whose choices they share."
    ),
]
SecondId = Annotated[
    str | None,
    Field(
        description="Identifier of another one, of another data set with the same variables, "
        "model, linear term and transform: the second network; null: `by` is given."
    ),
]
By = Annotated[
    VariableName | None,
    Field(
        description="Column of the estimation's data set, not among its variables, with two "
        "different values, each of which is a group; rows without one are left out. Null: "
        "`other_job_id` is given."
    ),
]


class DifferenceSpec(SpecModel):
    """Whether two networks differ, pair by pair and as a whole."""

    kind: Literal["difference"] = Field("difference", description="The job's kind.")
    job_id: FirstId
    other_job_id: SecondId = None
    by: By = None
    n_permutations: Annotated[int, Field(strict=True, ge=0, le=MOST_PERMUTATIONS)] | None = Field(
        None,
        description="Permutations of rows for the global tests, from 0 to "
        f"{MOST_PERMUTATIONS}, two fits each; null: {PERMUTATIONS_OF_GROUPS} for groups, none "
        "for two results.",
    )
    fdr: float = Field(
        0.1,
        strict=True,
        gt=0,
        lt=1,
        description="False discovery rate, between 0 and 1, at which pairs are said to differ.",
    )
    seed: Seed = DEFAULT_SEED
    tag: Tag = None

    def check(self) -> None:
        """Raise `ValueError` unless there is one thing to compare with."""
        if (self.other_job_id is None) == (self.by is None):
            raise ValueError("give either `other_job_id` or `by`")


class DifferencePartSpec(SpecModel):
    """Some of a difference's permutations; made by the difference's own job, never by a client."""

    kind: Literal["difference-part"] = Field("difference-part", description="The job's kind.")
    job_id: FirstId
    other_job_id: SecondId = None
    by: By = None
    first: int = Field(
        ge=0, description="The part's first permutation; 0 stands for the groups as they are."
    )
    n_permutations: int = Field(ge=1, description="How many it has.")
    seed: Seed = DEFAULT_SEED
    part: int = Field(ge=0, description="Which part, from 0.")
    label: str = Field(description="What the part computes.")
    tag: Tag = None
