"""Simulations: a data set of known network, with holes, made by a job."""

from typing import Annotated, Literal

from pydantic import Field

from service.http.request_model import Label
from service.jobs.specs.base import DEFAULT_SEED, MIN_ROWS, OfRequestsOnly, Seed, SpecModel, Tag
from service.jobs.vocabulary import SimulatedGraph

MAX_CELLS = 20_000_000
# Any estimator needs as many observed cells in a column, and they have to differ.
MIN_OBSERVED = 2

NumRows = Annotated[
    int,
    Field(strict=True, ge=MIN_ROWS, le=1_000_000, description="Rows, from 6 to 1000000."),
    # Jobs of earlier releases may have asked for fewer.
    OfRequestsOnly,
]


class SimulationSpec(SpecModel):
    """A data set drawn from a truncated Gaussian, whose graph is attached as its ground truth."""

    kind: Literal["simulation"] = Field("simulation", description="The job's kind.")
    graph: SimulatedGraph = Field(
        description="`ring`: a circle of edges of strength 0.3 to 0.5; `hub`: the ring and a tenth "
        "of the variables joined to a quarter of all others, each. The diagonal of K is its "
        "largest row sum plus 0.01."
    )
    n_variables: int = Field(20, strict=True, ge=3, le=500, description="Variables, from 3 to 500.")
    n_rows: NumRows = 1_000
    missing_fraction: float = Field(
        0.0,
        strict=True,
        ge=0,
        lt=1,
        description="Share of cells that are discarded completely at random, from 0 to below 1. "
        "What is left has to be a table to learn from: in every column two cells that differ, and "
        "6 rows with a cell; the job fails where missing cells fall otherwise.",
    )
    name: Label | None = Field(
        None, description="Name of the data set; null: made of the graph, its size and the seed."
    )
    seed: Seed = DEFAULT_SEED
    tag: Tag = None

    def check(self) -> None:
        """Raise `ValueError` unless the table is of a size to be made, and to be learnt from."""
        if self.n_variables * self.n_rows > MAX_CELLS:
            raise ValueError(f"`n_variables` times `n_rows` is {MAX_CELLS} at most.")
        num_cells = self.n_variables * self.n_rows
        num_observed = num_cells - round(self.missing_fraction * num_cells)
        if num_observed < MIN_OBSERVED * self.n_variables:
            raise ValueError(
                f"`missing_fraction={self.missing_fraction:g}` leaves {num_observed} of "
                f"{num_cells} cells, and {self.n_variables} columns need {MIN_OBSERVED} each at "
                "least: discard fewer, or draw more rows."
            )
