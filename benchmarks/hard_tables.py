"""Pseudo-likelihood and score matching of tables with awkward columns: where they end, how fast.

    python -m benchmarks.hard_tables [--only dependent,cancer]

Every table is fitted by both, with h and without, without a penalty and under each kind at strength
1: objective (log pseudo-likelihood, or -J; higher is better) in nats a row, norm of the gradient,
seconds of CPU time, status. Decision 20 has what was made of it.
"""

import argparse
import itertools
import time
import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from vnce_engine import TruncatedGaussianPseudoLikelihood, TruncatedGaussianScoreMatching
from vnce_engine.experiments.graph_recovery import simulate

FloatArray = NDArray[np.float64]

ESTIMATORS = {
    "pseudo-likelihood": TruncatedGaussianPseudoLikelihood,
    "score-matching": TruncatedGaussianScoreMatching,
}
PENALTIES = ((None, "adaptive"), (1.0, "ridge"), (1.0, "adaptive"), (1.0, "l1"))


def tables(rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return tables (n, d) by name."""
    made = {
        f"{graph}-{percent}%": simulate(graph, percent / 100, 100)[1]
        for graph, percent in itertools.product(("ring", "hub"), (0, 30))
    }
    common = rng.normal(size=(300, 1))
    units = 10.0 ** np.array([-6, -3, 0, 3, 6])
    mixing = np.eye(20) + 0.1 * rng.normal(size=(20, 20))
    return made | {
        "iris": load_iris().data,
        "wine": load_wine().data,
        "cancer": load_breast_cancer().data,
        "binary": (rng.random((200, 5)) < 0.4) * 1.0,
        "dependent": np.abs(5 + common + 0.003 * rng.normal(size=(300, 4))),
        "dependent-at-0": np.abs(common + 0.003 * rng.normal(size=(300, 4))),
        "wide": np.abs(rng.normal(size=(12, 20))),
        "far": 50 + 0.01 * rng.normal(size=(300, 4)),
        "heavy": np.abs(rng.standard_cauchy(size=(300, 5))),
        "zeros": np.abs(rng.normal(size=(300, 6))) * (rng.random((300, 6)) < 0.5),
        "units": np.abs(rng.normal(size=(300, 5))) * units,
        "20000-rows": np.abs(rng.normal(size=(20_000, 20)) @ mixing),
        "100-columns": np.abs(rng.normal(size=(1_000, 100))),
    }


def main() -> None:
    """Print a line a fit, and how many of them converged."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names of tables, separated by commas")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    statuses: list[str] = []
    for name, X in tables(np.random.default_rng(0)).items():
        if only and name not in only.split(","):
            continue
        for (kind, estimator), linear, (penalty, penalty_kind) in itertools.product(
            ESTIMATORS.items(), ("zero", "free"), PENALTIES
        ):
            model = estimator(
                linear=linear, penalty=penalty, penalty_kind=penalty_kind, random_state=0
            )
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X)
            seconds = time.process_time() - began
            shrunk = "none" if penalty is None else penalty_kind
            statuses.append(model.status_)
            print(
                f"{name:15}{kind:18}h {linear:5}{shrunk:9}{model.objective_path_[-1]:18.9g}"
                f"{model.diagnostics_.gradient_norm:9.1e}{seconds:8.3f} s  {model.status_}",
                flush=True,
            )
    print(f"{statuses.count('converged')} of {len(statuses)} converged")


if __name__ == "__main__":
    main()
