"""Choosing the penalty and the linear term by held-out rows."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

from vnce_engine import GaussianEM, GaussianVNCE, TruncatedGaussianVNCE
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.observations import Observations
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.held_out import _is_lost, _Path, choose_linear
from vnce_engine.selection.setting import Setting
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)


def ring_table(n: int, linear: float = 0.0, fraction: float = 0.2, seed: int = 31) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = sample_truncated_gaussian(ring_precision(6, rng), n, rng, linear=np.full(6, linear))
    return mask_completely_at_random(X, fraction, rng)


@pytest.mark.slow
def test_the_path_runs_from_strong_to_weak_and_marks_what_is_nearest_to_the_choice() -> None:
    model = TruncatedGaussianVNCE(linear="zero", random_state=0).fit(ring_table(400))
    path = [step for step in model.penalty_path_ if step.kind == "adaptive"]
    strengths = [step.strength for step in path]
    assert strengths == sorted(strengths, reverse=True)
    (chosen,) = [step for step in model.penalty_path_ if step.chosen]
    best = max(path, key=lambda step: step.criterion)
    assert best.standard_error == 0.0
    assert abs(best.criterion - chosen.criterion) <= 1.5 * chosen.standard_error
    # A mean, by ratio, of those that do about as well.
    ratios = [abs(np.log(model.penalty_ / strength)) for strength in strengths]
    assert strengths[int(np.argmin(ratios))] == chosen.strength
    assert min(strengths) <= model.penalty_ <= max(strengths)


def path_of(*means: float, spread: float) -> _Path:
    """Return a path whose values have these means, and differences of that standard deviation."""
    noise = torch.linspace(-1, 1, 100, dtype=torch.float64)
    noise = noise / noise.std() * spread
    values = [mean + i * noise for i, mean in enumerate(means)]
    point = torch.ones(3, 3, dtype=torch.float64)
    strengths = [2.0**-i for i in range(len(means))]
    return _Path(PenaltyKind.ADAPTIVE, strengths, values, [point] * len(means), True)


def test_equally_good_strengths_count_alike_and_clearly_worse_ones_not_at_all() -> None:
    # Standard errors of missing are .1 and .2.
    assert path_of(-1.0, 0.0, 0.0, spread=1.0).strength() == pytest.approx(0.5 * 2**-0.5, rel=1e-6)
    assert path_of(0.0, -1.0, -3.0, spread=1.0).strength() == pytest.approx(1.0, rel=1e-6)
    # Half a standard error below the best: exp(-½) of its weight.
    share = np.exp(-0.5)
    expected = 2 ** -(share / (1 + share))
    assert path_of(0.0, -0.05, spread=1.0).strength() == pytest.approx(expected, rel=1e-6)


def test_a_fixed_penalty_leaves_no_path() -> None:
    model = TruncatedGaussianVNCE(linear="zero", penalty=0.3, random_state=0).fit(ring_table(100))
    assert model.penalty_ == 0.3
    assert model.penalty_path_ == []


def test_a_choice_at_the_end_of_the_grid_is_a_warning() -> None:
    # Independent columns: nothing is lost by the strongest penalty there is.
    rng = np.random.default_rng(5)
    X = np.abs(rng.normal(size=(300, 5)))
    model = TruncatedGaussianVNCE(linear="zero", penalty_kind="adaptive", random_state=0).fit(X)
    assert model.penalty_path_[0].chosen
    codes = [warning.code for warning in model.warnings_]
    assert "penalty-at-grid-end" in codes


@pytest.mark.slow
@pytest.mark.parametrize(("linear", "choice"), [(0.0, "zero"), (4.0, "free")])
def test_the_linear_term_is_kept_where_it_is_needed(linear: float, choice: str) -> None:
    model = TruncatedGaussianVNCE(penalty=0.5, random_state=0).fit(ring_table(500, linear))
    assert model.linear_choice_ == choice
    evidence = model.linear_evidence_
    assert (evidence.gain > 1.35 * evidence.standard_error) == (choice == "free")
    assert (model.linear_ == 0).all() == (choice == "zero")


@pytest.mark.slow
def test_two_rows_in_wrong_units_do_not_hide_that_a_linear_term_is_needed() -> None:
    X = np.abs(np.random.default_rng(5).normal(2.5, 1.0, size=(300, 3)))
    clean = TruncatedGaussianVNCE(penalty=1.0, random_state=0).fit(X)
    X[:2] *= 8
    model = TruncatedGaussianVNCE(penalty=1.0, random_state=0).fit(X)
    assert clean.linear_choice_ == model.linear_choice_ == "free"
    # They bend both models, but do not outweigh the other rows.
    assert model.linear_evidence_.gain > 3 * model.linear_evidence_.standard_error


@pytest.mark.slow
def test_both_shapes_of_penalty_shrink_and_the_adaptive_one_spares_what_is_strong() -> None:
    X = ring_table(300)
    free, ridge, adaptive = (
        TruncatedGaussianVNCE(linear="zero", random_state=0, **options).fit(X).precision_
        for options in (
            {"penalty": None},
            {"penalty": 1.0, "penalty_kind": "ridge"},
            {"penalty": 1.0, "penalty_kind": "adaptive"},
        )
    )
    pairs = np.triu_indices(6, k=1)
    norms = [float(np.square(K[pairs]).sum()) for K in (ridge, adaptive, free)]
    assert norms[0] < norms[2]
    assert norms[1] < norms[2]
    strongest = np.abs(free[pairs]).argmax()
    kept = [abs(K[pairs][strongest] / free[pairs][strongest]) for K in (ridge, adaptive)]
    assert kept[0] < kept[1]


@pytest.mark.parametrize(
    ("means", "is_lost"),
    [
        ([], False),
        ([0.0], False),
        ([-9.0, 0.0], False),
        # One fall ends it beyond three standard errors, two in a row beyond one and a half.
        ([0.0, -2.9], False),
        ([0.0, -3.1], True),
        ([0.0, -0.7, -1.4], False),
        ([0.0, -0.8, -1.6], True),
        ([0.0, -1.7, -1.6], False),
        ([0.0, -2.0, -1.0, -2.0], False),
    ],
)
def test_a_path_ends_where_the_last_strength_is_too_far_below_the_best(
    means: list[float], is_lost: bool
) -> None:
    # MissingnessPatterns to the best have a standard error of 1.
    spread = torch.linspace(-1, 1, 200, dtype=torch.float64)
    spread *= 200**0.5 / spread.std()
    values = [mean + (0 if mean == max(means) else 1) * spread for mean in means]
    assert _is_lost(values) == is_lost


def test_a_path_does_not_end_where_no_edge_has_come_in_yet() -> None:
    # Graphs without edges differ by rounding only, which may fall twice in a row.
    rng = np.random.default_rng(9)
    X = 5 + rng.normal(size=(120, 5)) + rng.normal(size=(120, 1))
    model = TruncatedGaussianVNCE(
        linear="free", penalty_kind="l1", penalties=[9.0, 8.0, 7.0, 6.0, 0.01], random_state=0
    ).fit(X)
    assert [step.num_edges for step in model.penalty_path_][:4] == [0, 0, 0, 0]
    assert model.penalty_path_[-1].strength == 0.01
    assert model.penalty_ == 0.01


@pytest.mark.slow
def test_where_interactions_are_all_alike_they_are_shrunk_towards_their_mean() -> None:
    # Ten interactions, all alike.
    d = 5
    K = np.full((d, d), 0.2) + np.eye(d)
    X = sample_truncated_gaussian(K, 1000, np.random.default_rng(4))
    model = TruncatedGaussianVNCE(linear="zero", random_state=0).fit(X)
    assert model.penalty_kind_ == "centred-ridge"
    assert {step.kind for step in model.penalty_path_} == {"adaptive", "centred-ridge"}
    given = TruncatedGaussianVNCE(linear="zero", penalty_kind="adaptive", random_state=0).fit(X)
    assert given.penalty_kind_ == "adaptive"
    pairs = np.triu_indices(d, k=1)
    assert model.precision_[pairs].mean() == pytest.approx(0.2, abs=0.05)
    # The adaptive penalty takes some for noise, and leaves others their noise.
    spread, of_given = (np.std(fit.precision_[pairs]) for fit in (model, given))
    assert spread < 0.03 < of_given


@pytest.mark.slow
def test_the_penalty_is_relaxed_where_held_out_rows_gain_by_it() -> None:
    """Few strong edges and many rows leave no doubt about which they are; weak ones and few do."""
    rng = np.random.default_rng(0)
    X = sample_truncated_gaussian(ring_precision(20, rng), 1000, rng)
    strong = TruncatedGaussianVNCE(linear="zero", random_state=0).fit(X)
    assert strong.penalty_relaxation_ > 0.9
    # Fifteen interactions of .15 and of both signs.
    signs = np.triu(rng.choice([-0.15, 0.15], size=(6, 6)), k=1)
    X = sample_truncated_gaussian(np.eye(6) + signs + signs.T, 1000, rng)
    weak = TruncatedGaussianVNCE(linear="zero", penalty_kind="adaptive", random_state=0).fit(X)
    assert weak.penalty_relaxation_ < 0.5
    given = TruncatedGaussianVNCE(linear="zero", penalty=0.3, random_state=0).fit(X)
    assert given.penalty_relaxation_ == 1
    ridge = TruncatedGaussianVNCE(penalty=0.3, penalty_kind="ridge", random_state=0).fit(X)
    assert ridge.penalty_relaxation_ is None


@pytest.mark.slow
def test_where_interactions_stand_out_the_penalty_is_adaptive() -> None:
    model = TruncatedGaussianVNCE(linear="zero", random_state=0).fit(ring_table(500, fraction=0.0))
    assert model.penalty_kind_ == "adaptive"


@pytest.mark.slow
@pytest.mark.parametrize(("linear", "choice"), [(0.0, "zero"), (1.5, "free")])
def test_a_table_with_more_parameters_than_rows_shows_whether_it_has_a_linear_term(
    linear: float, choice: str
) -> None:
    # 861 parameters and 300 rows: at the strength that serves long tables, neither model describes
    # rows held out, and the one with fewer parameters won by 4.7 standard errors either way.
    rng = np.random.default_rng(7)
    K = ring_precision(40, rng)
    X = sample_truncated_gaussian(K, 300, rng, linear=np.full(40, linear))
    observations = Observations.from_array(mask_completely_at_random(X, 0.3, rng))
    generator = torch.Generator().manual_seed(0)
    problem = Problem.prepare(observations, 10, "sobol", generator)
    setting = Setting(problem, PenaltyKind.ADAPTIVE, False)
    assert choose_linear(setting, Progress(None))[0] == (choice == "free")


def test_a_path_is_lost_where_an_objective_is_infinite() -> None:
    best = torch.zeros(20, dtype=torch.float64)
    assert _is_lost([best, torch.full_like(best, -torch.inf)])


@pytest.mark.release
@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_path_goes_on_beyond_a_small_fall_to_where_strong_dependence_comes_in(seed: int) -> None:
    # A fall of 1.7 standard errors ended it: sepal length and petal width had +.4 instead of -.3.
    X = load_iris().data
    masked = np.where(np.random.default_rng(seed).random(X.shape) < 0.2, np.nan, X)
    fitted = GaussianVNCE().fit(masked)
    assert fitted.partial_correlation_[0, 3] < -0.2
    # No rule that chooses a penalty should lose much against likelihood in 150 rows of 4 columns.
    assert fitted.score(X) > GaussianEM().fit(masked).score(X) - 0.05
