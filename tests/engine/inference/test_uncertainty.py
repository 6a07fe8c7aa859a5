"""Partial correlations without the penalty's bias, and their standard errors."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.base import clone

from vnce_engine import GaussianVNCE, TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.contrastive.gaussian_problem import GaussianProblem
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.information import to_matrix, to_slope
from vnce_engine.inference import uncertainty
from vnce_engine.inference.uncertainty import UnpenalisedStep, _Pairs
from vnce_engine.pipeline import assessment
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStep

FloatArray = NDArray[np.float64]

NUM_COLUMNS = 4
NUM_PARAMETERS = 15
COVARIANCE = 0.5 ** np.abs(np.subtract.outer(np.arange(NUM_COLUMNS), np.arange(NUM_COLUMNS)))


def normal_table(num_rows: int, seed: int = 0) -> FloatArray:
    """Return rows of correlated columns, all but surely above zero."""
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(np.full(NUM_COLUMNS, 8.0), COVARIANCE, num_rows)


def debiased(model: GaussianVNCE | TruncatedGaussianVNCE, field: str) -> FloatArray:
    """Return a field of all edges as a matrix."""
    matrix = np.zeros((NUM_COLUMNS, NUM_COLUMNS))
    for edge in model.edges_:
        matrix[edge.source, edge.target] = matrix[edge.target, edge.source] = getattr(edge, field)
    return matrix


def incomplete_problem(
    problem_class: type[Problem] | type[GaussianProblem],
) -> Problem | GaussianProblem:
    """Return 60 rows, a third of the cells missing, against three noise rows each."""
    X = np.abs(normal_table(60) - 8.0)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    generator = torch.Generator().manual_seed(0)
    return problem_class.prepare(Observations.from_array(X), 3, "sobol", generator)


@pytest.mark.parametrize("problem_class", [Problem, GaussianProblem])
def test_the_scores_of_all_rows_are_the_slope_of_the_terms(
    problem_class: type[Problem] | type[GaussianProblem],
) -> None:
    problem = incomplete_problem(problem_class)
    augmented = problem.start(has_linear=True)
    sample = problem.sample
    sample.redraw(augmented)
    everyone = torch.ones(problem.num_rows, dtype=torch.bool)
    scores = sample.scores(augmented, everyone)
    slope = to_slope(sample.terms(augmented, Progress(None))[1])
    torch.testing.assert_close(scores.sum(dim=0), slope, rtol=1e-10, atol=1e-8)
    some = torch.arange(problem.num_rows) % 3 == 1
    torch.testing.assert_close(sample.scores(augmented, some), scores[some])


def test_changes_of_partial_correlations_are_their_derivatives() -> None:
    rng = np.random.default_rng(2)
    square = torch.from_numpy(rng.normal(size=(5, 5)))
    augmented = square @ square.mT + torch.eye(5, dtype=torch.float64)
    least = torch.full((4,), 1e-3, dtype=torch.float64)
    pairs = _Pairs.of(augmented, least)
    direction = torch.from_numpy(rng.normal(size=(15, 1)))
    step = 1e-6
    moved = [_Pairs.of(augmented + to_matrix(s * direction[:, 0], 5), least) for s in (step, -step)]
    numerical = (moved[0].correlation - moved[1].correlation) / (2 * step)
    torch.testing.assert_close(pairs.change(direction)[:, 0], numerical, rtol=1e-7, atol=1e-8)


def test_a_column_whose_variance_a_step_leaves_without_bound_has_correlations_all_the_same() -> (
    None
):
    """Of K_22 below zero they go by the least that it may be, and the ratio to K_12 is kept."""
    augmented = torch.diag(torch.tensor([4.0, 1.0, -0.5, 0.0], dtype=torch.float64))
    augmented[0, 1] = augmented[1, 0] = -1.0
    augmented[1, 2] = augmented[2, 1] = 0.2
    pairs = _Pairs.of(augmented, torch.full((3,), 0.25, dtype=torch.float64))
    expected = torch.tensor([0.5, 0.0, -0.4], dtype=torch.float64)
    torch.testing.assert_close(pairs.correlation, expected)
    change = torch.zeros(10, 1, dtype=torch.float64)
    change[5] = 0.1  # K_12
    assert float(pairs.change_from_zero(change)[2, 0]) == pytest.approx(-0.4 * 0.1 / 0.2)


@pytest.mark.parametrize("chance", [0.0, 0.5])
@pytest.mark.parametrize("num_clusters", [None, 20, 3])
@pytest.mark.parametrize("has_linear", [True, False])
@pytest.mark.parametrize("problem_class", [Problem, GaussianProblem])
def test_the_step_and_the_errors_are_those_of_their_matrices(
    problem_class: type[Problem] | type[GaussianProblem],
    has_linear: bool,
    num_clusters: int | None,
    chance: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By whole matrices t + J⁻¹ g and J⁻¹ V J⁻¹ / n, of which rows were taken a few at a time.

    Drawn rows' chance is that of rows, whatever clusters these are in.
    """
    problem = incomplete_problem(problem_class)
    sample, n = problem.sample, problem.num_rows
    augmented = problem.start(has_linear=has_linear)
    augmented[0, 1] = augmented[1, 0] = 0.3
    is_estimated = problem.constraints(has_linear=has_linear).estimated()
    monkeypatch.setattr(uncertainty, "_CHUNK", 7 * NUM_PARAMETERS)
    monkeypatch.setattr(type(sample), "chance", chance)
    codes = (
        None if num_clusters is None else np.random.default_rng(3).integers(num_clusters, size=n)
    )
    clusters = None if codes is None else torch.from_numpy(codes)
    step = UnpenalisedStep.of(sample, augmented, is_estimated, clusters)
    assert step is not None
    found = step.uncertainty()

    free = torch.from_numpy(is_estimated.numpy()[np.triu_indices(NUM_COLUMNS + 1)])
    scores = sample.scores(augmented, torch.ones(n, dtype=torch.bool))
    inverse = torch.zeros(NUM_PARAMETERS, NUM_PARAMETERS, dtype=torch.float64)
    information = sample.information(augmented) / n
    inverse[torch.outer(free, free)] = information[free][:, free].inverse().flatten()
    end = augmented + to_matrix(inverse @ scores.mean(dim=0), NUM_COLUMNS + 1)
    of_rows = spread = torch.cov(scores.mT, correction=0)
    if codes is not None:
        sums = np.stack([(scores - scores.mean(dim=0))[codes == g].sum(dim=0) for g in set(codes)])
        factor = len(sums) / (len(sums) - 1) * (n - 1) / n
        spread = torch.from_numpy(factor * sums.T @ sums / n)
    covariance = inverse @ (spread + chance * of_rows) @ inverse / n
    slopes = torch.autograd.functional.jacobian(
        lambda theta: partial_correlations(to_matrix(theta, NUM_COLUMNS + 1)),
        end[tuple(torch.triu_indices(NUM_COLUMNS + 1, NUM_COLUMNS + 1))],
    )
    covariances = torch.einsum("ijp,pq,ikq->ijk", slopes, covariance, slopes)
    expected = partial_correlations(end)
    torch.testing.assert_close(found.partial_correlation, expected)
    torch.testing.assert_close(found.covariance, covariances)
    variances = covariances.diagonal(dim1=1, dim2=2).clamp(min=0)
    torch.testing.assert_close(found.standard_error, variances.sqrt())
    i, j = np.triu_indices(NUM_COLUMNS, k=1)
    positions = torch.triu_indices(NUM_COLUMNS + 1, NUM_COLUMNS + 1).T.tolist()
    of_pair = [positions.index([int(a), int(b)]) for a, b in zip(i, j, strict=True)]
    of_interaction = covariance.diagonal()[of_pair] / (end[i, i] * end[j, j])
    torch.testing.assert_close(found.null_error[i, j].square(), of_interaction)
    mean = scores.mean(dim=0)
    by_chance = chance * float((inverse @ of_rows).trace())
    assert step.distance == pytest.approx(n * float(mean @ inverse @ mean) - by_chance)
    assert step.expected_distance == pytest.approx(float((inverse @ spread).trace()))


@pytest.mark.parametrize("estimator", [GaussianVNCE, TruncatedGaussianVNCE])
def test_rows_in_clusters_of_their_own_are_independent_rows(
    estimator: type[GaussianVNCE] | type[TruncatedGaussianVNCE],
) -> None:
    X = normal_table(80)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    labels = [f"row {place}" for place in np.random.default_rng(2).permutation(80)]
    alone, own = estimator(penalty=0.3).fit(X), estimator(penalty=0.3).fit(X, clusters=labels)
    assert own.edges_ == alone.edges_
    assert own.centrality_ is not None
    assert (alone.diagnostics_.num_clusters, own.diagnostics_.num_clusters) == (None, 80)


def test_copies_of_rows_say_nothing_new_where_they_are_in_clusters() -> None:
    """Standard errors are those of the rows once; by itself each copy counts as a row.

    Those of the same copies, in clusters and not, have one J, and differ by the root of five but
    for a fiftieth that noise adds to the variance, drawn for each copy, and what chance has both of
    them share: a per cent each. Those of the rows once have a J of other noise rows, 800 of them,
    which leave it a twentieth.
    """
    X = normal_table(200)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    options: dict[str, Any] = {"penalty_kind": "ridge", "noise_ratio": 50}
    once = GaussianVNCE(penalty=0.001, **options).fit(X)
    five = GaussianVNCE(penalty=0.001, **options)
    copies, labels = np.repeat(X, 5, axis=0), np.repeat(np.arange(200), 5)
    errors, naive, clustered = (
        debiased(model, "standard_error")[np.triu_indices(NUM_COLUMNS, 1)]
        for model in (once, clone(five).fit(copies), clone(five).fit(copies, clusters=labels))
    )
    np.testing.assert_allclose(naive * math.sqrt(5), clustered, rtol=0.05)
    np.testing.assert_allclose(clustered, errors, rtol=0.25)


def test_degrees_of_freedom_are_those_of_clusters_that_have_both_columns() -> None:
    X = normal_table(120)
    labels = np.repeat(np.arange(12), 10)
    X[labels >= 5, 0] = np.nan  # five clusters have the first column
    model = GaussianVNCE(penalty=0.3, penalty_kind="ridge").fit(X, clusters=labels)
    for edge in model.edges_:
        assert edge.debiased is not None
        assert edge.standard_error is not None
        assert edge.upper is not None
        freedom = 4 if edge.source == 0 else 11
        width = student.isf(0.025, freedom) * edge.standard_error
        assert edge.upper == pytest.approx(min(edge.debiased + width, 1.0))
    assert "few-clusters" in {warning.code for warning in model.warnings_}


def test_fewer_than_three_clusters_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3 different labels"):
        GaussianVNCE().fit(normal_table(20), clusters=np.arange(20) % 2)


def test_neither_the_order_of_rows_nor_the_names_of_clusters_change_an_estimate() -> None:
    rng = np.random.default_rng(4)
    X = np.round(normal_table(90), 1)
    labels = rng.integers(0, 25, 90)
    order, names = rng.permutation(90), rng.permutation(25)
    one = TruncatedGaussianVNCE().fit(X, clusters=labels)
    other = TruncatedGaussianVNCE().fit(X[order], clusters=[f"p{names[k]}" for k in labels[order]])
    assert one.penalty_ == other.penalty_
    assert one.edges_ == other.edges_


def partial_correlations(augmented: torch.Tensor) -> torch.Tensor:
    """Return the partial correlations (d, d) of A (d + 1, d + 1), 1 on the diagonal."""
    precision = augmented[:-1, :-1]
    scale = precision.diagonal().rsqrt()
    correlation = -precision * torch.outer(scale, scale)
    return correlation + 2 * torch.eye(len(scale), dtype=scale.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [0.1, 3.0])
@pytest.mark.parametrize("estimator", [GaussianVNCE, TruncatedGaussianVNCE])
def test_of_a_complete_table_they_are_about_those_of_maximum_likelihood(
    estimator: type[GaussianVNCE] | type[TruncatedGaussianVNCE], penalty: float
) -> None:
    """Far from zero both models are the Gaussian, of which rho and (1 - rho²) / sqrt(n) are known.

    Against fifty noise rows a data row, which leaves NCE a variance of 1.1 times as much at most.
    What the penalties take from the interactions, the step brings back: by itself that of the weak
    one, from fits with weaker penalties that of the strong one, which halves them. Rows drawn for
    the truncated model's step, twenty a data row, leave it .22 standard errors from there, and the
    mean of four .11.
    """
    num_rows = 2_000
    X = normal_table(num_rows)
    options: dict[str, Any] = {"penalty": penalty, "penalty_kind": "ridge", "noise_ratio": 50}
    seeds = range(4) if estimator is TruncatedGaussianVNCE else [1]
    models = [estimator(**options, random_state=seed).fit(X) for seed in seeds]
    inverse = np.linalg.inv(np.cov(X.T))
    scale = np.sqrt(np.diag(inverse))
    of_sample = -inverse / np.outer(scale, scale)
    off = ~np.eye(NUM_COLUMNS, dtype=bool)
    expected = (1 - of_sample**2) / math.sqrt(num_rows)
    shrunk = np.abs(models[0].partial_correlation_ - of_sample)[off].max()
    found = np.mean([debiased(model, "debiased") for model in models], axis=0)
    left = np.abs(found - of_sample)[off].max()
    assert left < 0.5 * expected[off].min()
    assert left < 0.2 * shrunk
    ratio = debiased(models[0], "standard_error")[off] / expected[off]
    assert (np.abs(ratio - 1) < 0.1).all()


@pytest.mark.parametrize(
    ("options", "verdicts"),
    [
        ({}, {"present": 2, "undecided": 4}),
        ({"fdr": 0.4}, {"present": 4, "undecided": 2}),
        ({"fdr": 0.4, "fdr_method": "benjamini-yekutieli"}, {"present": 3, "undecided": 3}),
        ({"edge_threshold": 0.5}, {"present": 2, "undecided": 2, "absent": 2}),
    ],
)
def test_an_estimator_s_options_are_the_rule_of_its_verdicts(
    options: dict[str, Any], verdicts: dict[str, int]
) -> None:
    """Four q-values are above .1, one of them .11 and one .35; two intervals end within .5.

    By Benjamini and Yekutieli each is two and a half times as large.
    """
    model = GaussianVNCE(penalty=1.0, **options).fit(normal_table(40, seed=3))
    assert Counter(edge.verdict for edge in model.edges_) == verdicts


def test_without_a_penalty_there_is_nothing_to_take_off() -> None:
    model = GaussianVNCE(penalty=None, random_state=0).fit(normal_table(400))
    off = ~np.eye(NUM_COLUMNS, dtype=bool)
    change = np.abs(debiased(model, "debiased") - model.partial_correlation_)[off]
    assert (change < 0.01 * debiased(model, "standard_error")[off]).all()


@pytest.mark.slow
def test_the_order_of_columns_changes_nothing() -> None:
    X = normal_table(300)
    X[::4, 2] = np.nan
    order = [2, 0, 3, 1]
    model = TruncatedGaussianVNCE(penalty=1.0).fit(X)
    reordered = TruncatedGaussianVNCE(penalty=1.0).fit(X[:, order])
    for field in ("debiased", "standard_error", "q_value"):
        matrix = debiased(model, field)[np.ix_(order, order)]
        np.testing.assert_allclose(debiased(reordered, field), matrix, rtol=1e-6, atol=1e-12)


def test_a_fit_that_has_not_converged_has_none_and_says_so() -> None:
    model = TruncatedGaussianVNCE(penalty=1.0, max_iter=1).fit(normal_table(100))
    assert not model.converged_
    assert model.no_uncertainty_ == "the fit has not converged"
    assert all(edge.debiased is None and edge.verdict is None for edge in model.edges_)


@pytest.mark.parametrize(
    ("num_rows", "penalty", "is_refitted"),
    [(200, 30.0, True), (200, 0.1, False), (14, 30.0, False)],
)
def test_fits_with_weaker_penalties_precede_a_step_from_far_where_rows_outnumber_parameters(
    num_rows: int, penalty: float, is_refitted: bool
) -> None:
    steps: list[FitStep] = []
    model = TruncatedGaussianVNCE(penalty=penalty, linear="free")
    model.fit(normal_table(num_rows), on_step=steps.append)
    cycles = {step.iteration for step in steps if step.stage == "uncertainty"}
    assert (cycles != {0, model.n_iter_}) is is_refitted
    assert model.no_uncertainty_ is None


def test_rows_that_say_nothing_of_the_parameters_have_no_step() -> None:
    problem = incomplete_problem(GaussianProblem)
    augmented = problem.start(has_linear=True)
    augmented[-1, -1] = 1e4  # no row is at all likely to be data
    everything = torch.ones_like(augmented, dtype=torch.bool)
    assert UnpenalisedStep.of(problem.sample, augmented, everything) is None


def test_noise_that_does_not_overlap_the_data_tells_nothing() -> None:
    model = TruncatedGaussianVNCE(penalty=1.0, noise_scale=1e3).fit(normal_table(100))
    assert model.converged_
    assert model.no_uncertainty_ == "noise and data hardly overlap"


def test_too_many_parameters_for_a_matrix_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assessment, "MOST_PARAMETERS", 14)
    model = GaussianVNCE(penalty=1.0).fit(normal_table(100))
    assert model.no_uncertainty_ == "the model has more than 14 parameters"
    assert model.edges_[0].q_value is None


@pytest.mark.slow
def test_a_fit_that_goes_on_in_its_last_stage_has_the_same_diagnostics() -> None:
    """Cells are drawn anew in it, under another estimate if the penalty is strong, as it is."""
    X = normal_table(200)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan

    def save(step: FitStep) -> None:
        assert step.checkpoint is not None
        if step.stage == "uncertainty":
            saves.append(step.checkpoint.dump())

    saves: list[bytes] = []
    estimator = TruncatedGaussianVNCE(penalty=3.0, linear="free")
    whole = clone(estimator).fit(X, on_step=save)
    error = debiased(whole, "standard_error")
    assert len(saves) > 3
    for stored in saves:
        resumed = clone(estimator).fit(X, checkpoint=Checkpoint.load(stored))
        assert resumed.diagnostics_ == whole.diagnostics_
        moved = np.abs(debiased(resumed, "debiased") - debiased(whole, "debiased"))
        assert (moved <= 0.1 * error).all()


@pytest.mark.slow
def test_filled_cells_are_not_taken_for_observed_ones() -> None:
    X = normal_table(100)
    assert TruncatedGaussianNCE(penalty=1.0).fit(X).no_uncertainty_ is None
    X[0, 0] = np.nan
    filled = TruncatedGaussianNCE(penalty=1.0).fit(X)
    assert filled.no_uncertainty_ == "missing cells were filled before the fit"
    assert filled.edges_[0].standard_error is None
    assert TruncatedGaussianNCE(penalty=1.0, imputation="drop").fit(X).no_uncertainty_ is None
