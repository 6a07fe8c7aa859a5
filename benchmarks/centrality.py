"""How often 95 % intervals of centrality and predictability hold the truth in small tables.

    python -m benchmarks.centrality [--tables 100] [--rows 15,20,30,60] [--columns 5]

Tables are of rings with both signs, Gaussian or truncated with h = 0. A line each kind and number
of rows: over all variables, the share whose interval holds the true expected influence; of those
with a pair found present, the true strength of these pairs; and, of Gaussian rows, the share of
variance that the fitted model explains in new rows. Each as it is and, in brackets, as it would be
by Student's t with one degree of freedom less than rows.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import t as student

from vnce_engine import GaussianVNCE, TruncatedGaussianVNCE
from vnce_engine.inference.interval import CONFIDENCE, HALF_WIDTH, Interval
from vnce_engine.inference.metrics import scaled_interaction
from vnce_engine.inference.result import Verdict
from vnce_engine.simulate import sample_truncated_gaussian

FloatArray = NDArray[np.float64]

INFLUENCE, STRENGTH, PREDICTABILITY = "expected influence", "strength", "predictability"


def main() -> None:
    """Print a line for each kind of rows and number of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.centrality")
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--rows", default="15,20,30,60")
    parser.add_argument("--columns", type=int, default=5)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print(f"kind | rows | {INFLUENCE} | {STRENGTH} | {PREDICTABILITY}")
    for kind in ("Gaussian", "truncated"):
        for num_rows in map(int, chosen.rows.split(",")):
            found: dict[str, list[tuple[bool, bool]]] = {}
            for seed in range(chosen.tables):
                for name, interval, truth in _intervals(kind, num_rows, chosen.columns, seed):
                    held = _holds(interval, truth, num_rows)
                    found.setdefault(name, []).append(held)
            cells = [_cell(found.get(name, [])) for name in (INFLUENCE, STRENGTH, PREDICTABILITY)]
            print(" | ".join([kind, str(num_rows), *cells]), flush=True)


def _intervals(
    kind: str, num_rows: int, width: int, seed: int
) -> Iterator[tuple[str, Interval | None, float]]:
    """Yield what intervals are of, each variable's, and what they are for."""
    rng = np.random.default_rng([77, num_rows, seed])
    K = _ring(width, rng)
    rho = scaled_interaction(K) - np.eye(width)
    covariance = np.linalg.inv(K)
    model: GaussianVNCE | TruncatedGaussianVNCE
    if kind == "Gaussian":
        X = rng.multivariate_normal(np.zeros(width), covariance, size=num_rows)
        model = GaussianVNCE(random_state=seed).fit(X)
    else:
        X = sample_truncated_gaussian(K, num_rows, rng)
        model = TruncatedGaussianVNCE(linear="zero", random_state=seed).fit(X)
    for of in model.centrality_ or []:
        j = of.column
        present = [
            (edge.source + edge.target - j, np.sign(edge.debiased))
            for edge in model.edges_
            if j in (edge.source, edge.target) and edge.verdict is Verdict.PRESENT
        ]
        yield INFLUENCE, of.expected_influence, float(rho[j].sum())
        if present:
            yield STRENGTH, of.strength, float(sum(sign * rho[j, i] for i, sign in present))
    if kind == "Gaussian":
        weights = model.precision_ / model.precision_.diagonal()[:, None]
        offset = model.linear_ / model.precision_.diagonal()
        left = np.einsum("ji,ik,jk->j", weights, covariance, weights) + offset**2
        shares = 1 - left / covariance.diagonal()
        for share, interval in zip(shares, model.predictability(X), strict=True):
            yield PREDICTABILITY, interval, float(share)


def _ring(width: int, rng: np.random.Generator) -> FloatArray:
    """Return K (width, width) of a ring with unit diagonal and weights of .2 to .45, any sign."""
    K = np.eye(width)
    for i in range(width):
        j = (i + 1) % width
        K[i, j] = K[j, i] = rng.choice([-1, 1]) * rng.uniform(0.2, 0.45)
    return K


def _holds(interval: Interval | None, truth: float, num_rows: int) -> tuple[bool, bool]:
    """Return whether an interval holds the truth, as it is and by Student's t."""
    if interval is None:
        return False, False
    error, width = abs(interval.value - truth), interval.upper - interval.value
    wider = student.isf((1 - CONFIDENCE) / 2, num_rows - 1) / HALF_WIDTH
    return error <= width, error <= wider * width


def _cell(held: list[tuple[bool, bool]]) -> str:
    if not held:
        return ""
    normal, by_student = np.mean(held, axis=0)
    return f"{normal:.3f} ({by_student:.3f}) of {len(held)}"


if __name__ == "__main__":
    main()
