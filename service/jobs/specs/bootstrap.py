"""Bootstraps: how an estimated network varies over resamples of its rows, in parts."""

from typing import Annotated, Literal

from pydantic import Field

from service.jobs.specs.base import DEFAULT_SEED, Seed, SpecModel, Tag

MOST_RESAMPLES = 2_000
# One of each share of the rows that is left out.
FEWEST_SUBSETS = 10

EstimationId = Annotated[
    str, Field(description="Identifier of an estimation that has succeeded: what is bootstrapped.")
]
Resamples = Annotated[int, Field(strict=True, ge=2, le=MOST_RESAMPLES)]


class BootstrapSpec(SpecModel):
    """An estimated network, fitted again to resamples of its rows by the same choices."""

    kind: Literal["bootstrap"] = Field("bootstrap", description="The job's kind.")
    job_id: EstimationId
    n_resamples: Resamples = Field(
        200, description="Tables of rows that are drawn with replacement, from 2 to 2000."
    )
    n_subsets: int = Field(
        0,
        strict=True,
        ge=0,
        le=MOST_RESAMPLES,
        description=f"Subsets of the rows for correlation stability, 0 or {FEWEST_SUBSETS} to "
        f"{MOST_RESAMPLES}, which lack 5 to 75 % of them.",
    )
    seed: Seed = DEFAULT_SEED
    tag: Tag = None

    def check(self) -> None:
        """Raise `ValueError` unless there are enough subsets, or none."""
        if 0 < self.n_subsets < FEWEST_SUBSETS:
            raise ValueError(
                f"`n_subsets` must be 0, or at least {FEWEST_SUBSETS}: one of each share of the "
                "rows that is left out"
            )


class BootstrapPartSpec(SpecModel):
    """Some of a bootstrap's resamples; made by the bootstrap's own job, never by a client."""

    kind: Literal["bootstrap-part"] = Field("bootstrap-part", description="The job's kind.")
    job_id: EstimationId
    first: int = Field(ge=0, description="The part's first resample, counted from 0.")
    n_resamples: int = Field(ge=1, description="How many it has.")
    are_subsets: bool = Field(
        False, description="Whether rows are left out, in place of drawn with replacement."
    )
    seed: Seed = DEFAULT_SEED
    part: int = Field(ge=0, description="Which part, from 0.")
    label: str = Field(description="What the part computes.")
    tag: Tag = None
