"""The EM algorithm for VNCE on a normalised mixture, step by step (Figure 3 of the paper).

sigma_1 = 1, theta* = 4, noise N(0, theta*²), nu = 1.
Source: Rhodes and Gutmann (2019), Section 4.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vnce_engine.estimators.seeds import numbered_generator
from vnce_engine.experiments.experiment import Part, Row, SummaryTable
from vnce_engine.experiments.mixture import em, objectives
from vnce_engine.experiments.mixture.data import MixtureData, draw_normalised
from vnce_engine.experiments.mixture.model import log_joint
from vnce_engine.runtime.checks import check_count, check_positive, check_seed
from vnce_engine.runtime.progress import FitCancelledError, OnStep
from vnce_engine.runtime.reports import FitStep

NU = 1.0
_COLUMNS = {
    "steps": ("step", "kind", "theta", "nce", "vnce"),
    "maxima": ("objective", "theta", "value"),
}
_TITLES = {
    "steps": "theta and the objectives after each step",
    "maxima": "Where J_NCE is largest, sought directly, and where EM has brought J_VNCE",
}


@dataclass(frozen=True)
class MixtureEm:
    """The experiment; one part."""

    name: ClassVar[str] = "mixture-em"

    truth: float = 4.0
    start: float = 12.0
    """theta at the start: large, where q and the two objectives differ visibly from the end's."""
    num_rows: int = 2_000
    num_pairs: int = 8
    """Pairs of an E- and an M-step."""
    num_drawn: int = 3
    """Pairs, the first ones, whose objectives are given as curves; those of the last always are."""
    grid: tuple[float, float, int] = (2.0, 14.0, 121)
    """Lowest and highest theta of the curves, and how many points they have."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive("truth", self.truth)
        check_positive("start", self.start)
        check_count("num_rows", self.num_rows)
        check_count("num_pairs", self.num_pairs)
        check_count("num_drawn", self.num_drawn, least=0)
        check_seed("seed", self.seed)

    @classmethod
    def quick(cls, seed: int = 0) -> "MixtureEm":
        """Return the experiment itself, which takes a second."""
        return cls(seed=seed)

    def parts(self) -> tuple[Part, ...]:
        """Return the one part."""
        return (Part("all steps", 1.0),)

    def run(self, index: int, on_step: OnStep | None = None) -> tuple[Row, ...]:
        """Return tables `steps` (theta and both objectives after each), `curves` and `maxima`."""
        seed = int(numbered_generator(self.seed, index).integers(2**63 - 1))
        truth = torch.tensor([self.truth], dtype=torch.float64)
        generator = torch.Generator().manual_seed(seed)
        data = draw_normalised(truth, self.num_rows, self.num_rows, generator)
        theta = torch.full_like(truth, self.start)
        rows: list[Row] = []
        for pair in range(self.num_pairs):
            log_q = em.e_step(theta, data)
            rows.append(_step_row(2 * pair, "E", theta, log_q, data))
            theta = em.m_step(theta, log_q, data, NU)
            rows.append(_step_row(2 * pair + 1, "M", theta, log_q, data))
            if pair < self.num_drawn or pair == self.num_pairs - 1:
                rows += self._curves(pair, log_q, data)
            done = (pair + 1) / self.num_pairs
            objective = float(objectives.nce(log_joint, theta, data, NU))
            if on_step is not None and on_step(FitStep("EM", done, pair + 1, objective)):
                raise FitCancelledError
        return (*rows, *self._maxima(theta, data))

    def summarise(self, rows: Sequence[Row]) -> tuple[SummaryTable, ...]:
        """Return the objectives after each step, and their maxima, which agree (Theorem 2)."""
        return tuple(
            SummaryTable(
                name,
                _TITLES[name],
                columns,
                tuple(
                    tuple(row[column] for column in columns) for row in rows if row["table"] == name
                ),
            )
            for name, columns in _COLUMNS.items()
        )

    def _curves(self, pair: int, log_q: Tensor, data: MixtureData) -> list[Row]:
        low, high, num_points = self.grid
        return [
            {
                "table": "curves",
                "pair": pair,
                "theta": float(theta),
                "nce": float(objectives.nce(log_joint, theta[None], data, NU)),
                "vnce": float(objectives.vnce(log_joint, theta[None], log_q, data, NU)),
            }
            for theta in torch.linspace(low, high, num_points, dtype=torch.float64)
        ]

    def _maxima(self, theta: Tensor, data: MixtureData) -> list[Row]:
        best = em.nce_maximum(torch.full_like(theta, self.start), data, NU)
        of_vnce = objectives.vnce(log_joint, theta, em.e_step(theta, data), data, NU)
        found = (("NCE", best, objectives.nce(log_joint, best, data, NU)), ("VNCE", theta, of_vnce))
        return [
            {"table": "maxima", "objective": name, "theta": float(at), "value": float(value)}
            for name, at, value in found
        ]


def _step_row(step: int, kind: str, theta: Tensor, log_q: Tensor, data: MixtureData) -> Row:
    return {
        "table": "steps",
        "step": step,
        "kind": kind,
        "theta": float(theta),
        "nce": float(objectives.nce(log_joint, theta, data, NU)),
        "vnce": float(objectives.vnce(log_joint, theta, log_q, data, NU)),
    }
