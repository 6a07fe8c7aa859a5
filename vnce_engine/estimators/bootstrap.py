"""The bootstrap of a network: how it comes out in tables of rows drawn again from its table.

Rows are drawn, or whole clusters where rows are dependent within these.

What the fit to the whole table has chosen, the transform, the strength and kind of the penalty and
whether there is a linear term, is held: resamples say how an estimate made by these choices varies
over tables, and not how the choices do. All else is done anew, with other noise and other draws.
Source: Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapters 6 and 13.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from vnce_engine.data.clusters import Codes, own_clusters, rows_of
from vnce_engine.data.observations import Observations
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.choices import Choices
from vnce_engine.estimators.refits import codes_as_fitted, refusal_of_fit
from vnce_engine.estimators.seeds import RandomState, numbered_generator, seed_of
from vnce_engine.inference.resamples import Bootstrap, Failure, Network, summarise
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.checks import check_count
from vnce_engine.runtime.progress import OnStep, within
from vnce_engine.runtime.reports import FitStatus

FloatArray = NDArray[np.float64]

MOST_RESAMPLES = 2_000

# Of so many rows those of a numbered resample, by its generator.
Draw = Callable[[np.random.Generator, int, int], NDArray[np.int64]]


def bootstrap(
    estimator: NetworkEstimator,
    X: ArrayLike,
    n_resamples: int = 200,
    random_state: RandomState = 0,
    on_step: OnStep | None = None,
    clusters: ArrayLike | None = None,
) -> Bootstrap:
    """Return how the network of an `estimator`, fitted to X (n, d), varies over resamples of X.

    Resamples are rows of X, as many as it has with something observed, drawn with replacement; of
    an estimator that was fitted with `clusters` (n,), given here again, whole clusters are drawn.
    `on_step` is called as by `fit`; returning True raises `FitCancelledError`.

    Raises `ValueError` unless there are 2 to 2,000 resamples, where there are clusters here and not
    in the fit or the reverse, and where the graph was chosen by half-samples, which say how stable
    it is; `NotFittedError` for an estimator that is not fitted.
    """
    check_is_fitted(estimator)
    check_count("n_resamples", n_resamples, least=2, most=MOST_RESAMPLES)
    table, choices = estimator.read(X), estimator.choices()
    codes = codes_as_fitted(estimator, clusters, len(table))
    seed = seed_of(random_state)
    outcomes = fit_resamples(
        estimator, choices, table, range(n_resamples), seed, on_step, clusters=codes
    )
    return summarise(outcomes, network_of(estimator), table.shape[1], n_resamples)


def with_replacement(rng: np.random.Generator, num_rows: int, number: int) -> NDArray[np.int64]:
    """Return as many rows, some of them more than once."""
    return rng.integers(num_rows, size=num_rows)


def fit_resamples(
    estimator: NetworkEstimator,
    choices: Choices,
    table: FloatArray,
    numbers: Sequence[int],
    seed: int,
    on_step: OnStep | None = None,
    checkpoint: Checkpoint | None = None,
    draw: Draw = with_replacement,
    clusters: Codes | None = None,
) -> list[Network | Failure]:
    """Fit an estimator, with the `choices` of its fit to a `table` (n, d), to some resamples of it.

    Of rows; or of `clusters` (n,), those that are drawn twice being two clusters of the resample.
    A number stands for the same rows and noise in any company. A fit that ran out of iterations has
    a network only if that of the whole table did too. With the checkpoint of an interrupted run of
    the same, `Checkpoint.load(step.checkpoint.dump())`, it goes on from there.
    """
    held = estimator.with_choices(choices)
    observations = Observations.from_array(table, clusters)
    observations = observations.of_rows(observations.observed.any(dim=1))
    known, labels = observations.to_array(), observations.clusters
    codes = own_clusters(len(known)) if labels is None else labels.numpy()
    number_drawn = int(codes.max()) + 1
    checkpoint = checkpoint or Checkpoint()
    made_of = (type(held).__name__, held.get_params(), choices, tuple(numbers), draw.__name__)
    checkpoint.begin_fit(observations.name_of_fit(made_of, seed))
    accepted = [FitStatus.CONVERGED, *([] if choices.converged else [FitStatus.MAX_ITERATIONS])]

    def outcome(position: int, number: int) -> Tensor | str:
        rng = numbered_generator(seed, number)
        rows, drawn = rows_of(codes, draw(rng, number_drawn, number))
        held.set_params(random_state=int(rng.integers(2**63 - 1)))
        report = within(on_step, position, len(numbers), f"resample {number + 1}")
        of_drawn = None if clusters is None else drawn
        refusal = refusal_of_fit(held, known[rows], report, checkpoint, of_drawn)
        if refusal is not None:
            return f"refused: {refusal}"
        return _pairs(held) if held.status_ in accepted else str(held.status_)

    outcomes = [
        checkpoint.once(partial(outcome, position, number))
        for position, number in enumerate(numbers)
    ]
    return [Failure(one) if isinstance(one, str) else Network(*one.numpy()) for one in outcomes]


def network_of(estimator: NetworkEstimator) -> Network:
    """Return the network that an estimator has found."""
    return Network(*_pairs(estimator).numpy())


def _pairs(estimator: NetworkEstimator) -> Tensor:
    """Return what a `Network` has (3, m), pairs row by row."""
    edges = sorted(estimator.edges_, key=lambda edge: (edge.source, edge.target))
    return torch.tensor(
        [
            [edge.partial_correlation for edge in edges],
            [np.nan if edge.debiased is None else edge.debiased for edge in edges],
            [float(edge.selected) for edge in edges],
        ],
        dtype=torch.float64,
    )
