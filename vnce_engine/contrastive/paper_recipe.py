"""The estimator as the paper states it: variational EM by BFGS on plain Monte Carlo.

It is the reference against which the default algorithm is measured. Source: Rhodes and Gutmann
(2019), Section 5 and the appendix on experimental settings.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.contrastive.log_normal import LogNormal
from vnce_engine.contrastive.noise import ProductTruncatedNormal
from vnce_engine.contrastive.objective import data_term, noise_term, vnce_objective
from vnce_engine.data.observations import Observations
from vnce_engine.data.patterns import MissingnessPatterns
from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.optim import bfgs
from vnce_engine.optim.quadratic_forms import quadratic_forms
from vnce_engine.runtime.checkpoint import Saved
from vnce_engine.runtime.progress import FitCancelledError, Progress
from vnce_engine.runtime.reports import FitStatus

NOISE_RATIO = 10
NUM_DRAWS = 5
ITERATIONS_PER_STEP = 5
MAX_ITERATIONS = 80
# A cycle that raises the objective of 1,000 rows together by less than a thousandth of a nat ends
# the fit. The paper states no rule beside its cap.
OBJECTIVE_TOLERANCE = 1e-6
# An evaluation takes as long as about so many multiplications of matrices for each cell drawn.
_WORK_PER_CELL = 100


@dataclass(frozen=True)
class PaperFit:
    """What `fit_paper` found, in the units of the observations it was given."""

    model: QuadraticModel
    family: LogNormal
    status: FitStatus
    objective_path: tuple[float, ...]
    """The VNCE objective a row, less any penalty, at the start and after every cycle.

    It may fall: every cycle has draws of its own, and E-steps climb the data term alone.
    """
    num_iterations: int
    """BFGS iterations in M-steps; E-steps take about as many."""
    gradient_norm: float
    """Euclidean norm of the objective's gradient in theta after the last M-step."""
    log_ratio_data: Tensor
    """log phi - log q - log p_noise (k, n) of the data rows, under the last draws"""
    log_ratio_noise: Tensor
    """the same (k, nu n) of the noise rows"""


def fit_paper(
    observations: Observations,
    noise: ProductTruncatedNormal,
    generator: torch.Generator,
    *,
    has_linear: bool = False,
    penalty: Callable[[Tensor], Tensor] | None = None,
    max_iterations: int = MAX_ITERATIONS,
    progress: Progress | None = None,
) -> PaperFit:
    """Maximise the VNCE objective over K, c (and h if `has_linear`) and a joint log-normal q.

    E-steps move q and M-steps the model, in turn, by 5 BFGS iterations each, until a cycle no
    longer raises the objective or the M-steps have taken `max_iterations`. Each cycle draws new
    standard normals for both of its steps: with one set throughout, q learns that set by heart (at
    half of the cells missing that cost .05 of the area under the ROC curve). So a table with
    missing cells normally ends at its cap, as the paper's do.

    K need not be positive definite, as in the paper; its diagonal is positive by parametrisation.
    `penalty`, a function of K, is subtracted from the objective. BFGS is not scale-free: bring the
    columns to similar size first. Memory: a matrix of (d² / 2)² numbers, one of m² for each
    row with m missing cells, and the completed rows, 5 (1 + 10) n (d + 1) numbers.

    `progress` hears of every BFGS iteration, with the number of M-step iterations done. Its
    checkpoint has the start of the present cycle, from which an interrupted fit goes on. Raises
    `ValueError` if an observed cell is zero, which a log-normal cannot condition on.
    """
    progress = progress or Progress(None)
    em = _VariationalEM(observations, noise, generator, has_linear, penalty, progress)
    # Without missing cells there is nothing to alternate with: this is NCE, and runs through.
    step_length = max_iterations if observations.observed.all() else ITERATIONS_PER_STEP
    stage = progress.checkpoint.stage()
    if stage.saved is None:
        em.path.append(em.objective())
    else:
        em.go_on_from(stage.saved)
    status = FitStatus.MAX_ITERATIONS if math.isfinite(em.path[-1]) else FitStatus.NON_FINITE

    def report(objective: float) -> None:
        progress.report(em.num_iterations / max_iterations, em.num_iterations, objective)

    try:
        while status is FitStatus.MAX_ITERATIONS and em.num_iterations < max_iterations:
            if em.num_iterations:
                stage.save(em.to_save())
            em.begin_cycle()
            gain = em.improve_family(report)
            gain += em.improve_model(min(step_length, max_iterations - em.num_iterations), report)
            if not math.isfinite(em.path[-1]):
                status = FitStatus.NON_FINITE
            elif gain < OBJECTIVE_TOLERANCE:
                status = FitStatus.CONVERGED
    except FitCancelledError:
        status = FitStatus.CANCELLED
    log_ratio_data, log_ratio_noise = em.log_ratios(em.model())
    return PaperFit(
        model=em.model(),
        family=em.family(),
        status=status,
        objective_path=tuple(em.path),
        num_iterations=em.num_iterations,
        gradient_norm=em.gradient_norm,
        log_ratio_data=log_ratio_data,
        log_ratio_noise=log_ratio_noise,
    )


@dataclass(frozen=True)
class _Tables:
    """t tables (n, d) whose missing cells are at the same places, rows as columns."""

    values: Tensor
    """(t, d + 1, n), ending in ones, which carry h and c"""
    log_values: Tensor
    """(t, d, n)"""
    log_noise: Tensor
    """log p_noise of the observed cells (t, n)"""

    @classmethod
    def of(cls, rows: Tensor, observed: Tensor, noise: ProductTruncatedNormal) -> "_Tables":
        """Take tables (t, n, d)."""
        values = torch.nn.functional.pad(rows, (0, 1), value=1.0).mT.contiguous()
        log_values = rows.where(observed, 1.0).log().mT.contiguous()
        return cls(values, log_values, noise.log_prob(rows, observed))

    def complete(
        self, family: LogNormal, missing: MissingnessPatterns, normals: Tensor
    ) -> "_Completed":
        """Draw the missing cells by standard normals (p, t, k), with gradients by the family."""
        drawn = family.given(self.log_values, missing).draw(normals)
        rows = self.values.unsqueeze(2).repeat(1, 1, normals.shape[2], 1)
        rows[:, missing.column, :, missing.row] = drawn.logarithms.exp()
        return _Completed(rows, -drawn.log_prob - self.log_noise.unsqueeze(1))


@dataclass(frozen=True)
class _Completed:
    """Tables completed by draws from q, and the part of their log ratio without theta."""

    rows: Tensor
    """(t, d + 1, k, n)"""
    offset: Tensor
    """- log q - log p_noise (t, k, n)"""

    def log_ratio(self, model: QuadraticModel) -> Tensor:
        """Return log phi - log q - log p_noise (k, t n)."""
        augmented = model.augmented()
        log_phi = [quadratic_forms(augmented, table.flatten(1)) for table in self.rows]
        log_ratio = torch.stack(log_phi).view_as(self.offset) + self.offset
        return log_ratio.transpose(0, 1).flatten(1)


class _VariationalEM:
    """The alternation's state: theta, q, and the noise rows completed by the present q."""

    def __init__(
        self,
        observations: Observations,
        noise: ProductTruncatedNormal,
        generator: torch.Generator,
        has_linear: bool,
        penalty: Callable[[Tensor], Tensor] | None,
        progress: Progress,
    ) -> None:
        self.path: list[float] = []
        self.num_iterations = 0
        self.gradient_norm = math.nan
        self._progress = progress
        num_rows, num_columns = observations.values.shape
        self._work = _WORK_PER_CELL * NOISE_RATIO * NUM_DRAWS * num_rows * num_columns
        uniforms = open_uniforms((NOISE_RATIO * num_rows, num_columns), generator)
        noise_rows = noise.sample(uniforms).reshape(NOISE_RATIO, num_rows, num_columns)
        observed = observations.observed
        self._missing = MissingnessPatterns.of(observed)
        self._data_table = _Tables.of(observations.values.unsqueeze(0), observed, noise)
        self._noise_tables = _Tables.of(noise_rows, observed, noise)
        self._num_columns = num_columns
        self._generator = generator
        self._has_linear = has_linear
        self._penalty = penalty
        self._theta = _theta_at_noise(observations, noise, has_linear)
        self._alpha = LogNormal.fit_independent(observations).to_vector()
        self._redraw()

    def begin_cycle(self) -> None:
        """Take new draws for both steps of a cycle."""
        self._redraw()
        self._progress.spend(self._work)

    def to_save(self) -> Saved:
        """Return what a cycle begins from."""
        return (
            *(self._theta, self._alpha, self._generator.get_state()),
            *(self.num_iterations, self.gradient_norm, tuple(self.path)),
        )

    def go_on_from(self, saved: Saved) -> None:
        """Begin a cycle where an interrupted fit has begun one."""
        self._theta, self._alpha, generator, self.num_iterations, self.gradient_norm, path = saved
        self._generator.set_state(generator)
        self.path = list(path)

    def _redraw(self) -> None:
        """Take new standard normals for the draws from q."""
        # Without missing cells all draws of a row are alike, and one gives the NCE objective.
        num_draws = NUM_DRAWS if self._missing.num_cells else 1
        shape = (self._missing.num_cells, 1 + NOISE_RATIO, num_draws)
        normals = torch.randn(shape, dtype=torch.float64, generator=self._generator)
        self._data_normals, self._noise_normals = normals[:, :1], normals[:, 1:]
        self._set_family(self._alpha)

    def model(self) -> QuadraticModel:
        return self._model(self._theta)

    def family(self) -> LogNormal:
        return self._family(self._alpha)

    def objective(self) -> float:
        return self._objective(self.model()).item()

    def improve_family(self, on_objective: Callable[[float], None]) -> float:
        """Take an E-step, and return what the objective gains by it before noise is drawn from q.

        q changes the data term only, until its new noise draws are taken.
        """
        if not self._missing.num_cells:
            return 0.0
        model = self.model()
        rest = noise_term(self._noise.log_ratio(model), NOISE_RATIO) - self._penalty_of(model)

        def loss(alpha: Tensor) -> Tensor:
            self._progress.spend(self._work)
            log_ratio_data = self._complete_data(self._family(alpha)).log_ratio(model)
            return -data_term(log_ratio_data, NOISE_RATIO) - rest

        info = bfgs.minimise(
            loss,
            self._alpha,
            max_iterations=ITERATIONS_PER_STEP,
            on_iteration=lambda loss: on_objective(-loss),
        )
        self._set_family(info.parameters)
        return info.improvement

    def improve_model(self, max_iterations: int, on_objective: Callable[[float], None]) -> float:
        """Take an M-step up the whole objective with the draws fixed; return what it gains."""

        def loss(theta: Tensor) -> Tensor:
            self._progress.spend(self._work)
            return -self._objective(self._model(theta))

        info = bfgs.minimise(
            loss,
            self._theta,
            max_iterations=max_iterations,
            on_iteration=lambda loss: on_objective(-loss),
        )
        self._theta, self.gradient_norm = info.parameters, info.gradient_norm
        self.num_iterations += info.num_iterations
        self.path.append(-info.loss)
        return info.improvement

    def log_ratios(self, model: QuadraticModel) -> tuple[Tensor, Tensor]:
        """Return log phi - log q - log p_noise of data (k, n) and noise rows (k, nu n)."""
        return self._data.log_ratio(model), self._noise.log_ratio(model)

    def _objective(self, model: QuadraticModel) -> Tensor:
        terms = vnce_objective(*self.log_ratios(model), NOISE_RATIO)
        return terms.total - self._penalty_of(model)

    def _penalty_of(self, model: QuadraticModel) -> Tensor | float:
        return self._penalty(model.precision) if self._penalty is not None else 0.0

    def _set_family(self, alpha: Tensor) -> None:
        self._alpha = alpha
        family = self._family(alpha)
        self._data = self._complete_data(family)
        self._noise = self._noise_tables.complete(family, self._missing, self._noise_normals)

    def _complete_data(self, family: LogNormal) -> _Completed:
        return self._data_table.complete(family, self._missing, self._data_normals)

    def _family(self, alpha: Tensor) -> LogNormal:
        return LogNormal.from_vector(alpha, self._num_columns)

    def _model(self, theta: Tensor) -> QuadraticModel:
        """Read theta: logs of K's diagonal, K above it row by row, h if it is free, c."""
        d = self._num_columns
        num_pairs = d * (d - 1) // 2
        log_diagonal, pairs, linear, log_partition = theta.split(
            [d, num_pairs, d if self._has_linear else 0, 1]
        )
        rows, columns = torch.triu_indices(d, d, offset=1)
        upper = torch.diag(0.5 * log_diagonal.exp()).index_put((rows, columns), pairs)
        linear = linear if self._has_linear else theta.new_zeros(d)
        return QuadraticModel(upper + upper.mT, linear, log_partition.squeeze(0))


def _theta_at_noise(
    observations: Observations, noise: ProductTruncatedNormal, has_linear: bool
) -> Tensor:
    """Return the theta of independent columns: the noise itself, or half-normals where h = 0."""
    if has_linear:
        mu, sigma = noise.mu, noise.sigma
    else:
        counts = observations.observed.sum(dim=0)
        mu, sigma = (
            torch.zeros_like(noise.mu),
            (observations.values.square().sum(dim=0) / counts).sqrt(),
        )
    d = mu.shape[0]
    linear = mu / sigma.square()
    log_integral = truncated_normal.log_integral(mu, sigma)
    pairs = mu.new_zeros(d * (d - 1) // 2)
    return torch.cat(
        [-2 * sigma.log(), pairs, linear if has_linear else linear[:0], log_integral.sum()[None]]
    )
