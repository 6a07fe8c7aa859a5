"""Stability selection: the graph of the edges that most half-samples agree on.

Every half-sample gets an L1 path of its own; an edge's inclusion is the share of half-samples that
have it. Halves come in complementary pairs, and if an edge that should not be there is chosen no
more often than at random, and its inclusion has a unimodal distribution, then the expected number
of false edges among those with inclusion >= t is at most

    C q² / p,    C = 1 / (2 (2t - 1 - 1/(2B)))            for t <= 3/4
                     4 (1 - t + 1/(2B)) / (1 + 1/B)       for t > 3/4

with q the mean number of edges of a half-sample, p the number of pairs of columns and B the number
of pairs of halves, as long as q <= p / sqrt(3).
Sources: Meinshausen and Buehlmann (2010), "Stability selection", J. R. Stat. Soc. B 72; Shah and
Samworth (2013), "Variable selection with error control", J. R. Stat. Soc. B 75, Theorem 2 and
equation (8).
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from vnce_engine.contrastive.prepared import RowSampleT
from vnce_engine.data.observations import Observations
from vnce_engine.inference.result import PenaltyStep, Stability
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.selection.choice import PenaltyChoice, graph_of, num_edges
from vnce_engine.selection.held_out import choose_by_held_out_rows
from vnce_engine.selection.setting import Setting

# Frequencies from fewer of the half-samples that were asked for would be those of the lucky ones.
SMALLEST_SHARE_OK = 0.5
_TOLERANCE = 2e-2
_MAX_CYCLES = 30
# A half-sample's path ends beyond this many times the edges that the bound allows on average.
_OVERSHOOT = 2.0


@dataclass(frozen=True)
class StabilityRule:
    """How many half-samples, and which edges are stable."""

    num_subsamples: int = 100
    """Even, since half-samples come in pairs."""
    threshold: float = 0.75
    """Inclusion from which an edge is stable; above 1/2."""
    max_false_edges: float = 2.0
    """Largest bound on the expected number of false edges."""

    def most_edges(self, num_pairs: int) -> float:
        """Return the mean number of edges of a half-sample up to which the bound holds."""
        num_halvings = self.num_subsamples // 2
        constant = bound_constant(self.threshold, num_halvings)
        share = largest_share(self.threshold, num_halvings)
        return min(math.sqrt(num_pairs * self.max_false_edges / constant), num_pairs * share)


def has_bound(threshold: float, num_halvings: int) -> bool:
    """Return whether the number of false edges is bounded for B complementary pairs.

    Thresholds up to 3/4 need to be above 1/2 + 1/(4B): 0.6 needs three pairs, and 0.75 two.
    """
    return num_halvings > 0 and (threshold > 0.75 or 2 * threshold - 1 > 1 / (2 * num_halvings))


def bound_constant(threshold: float, num_halvings: int) -> float:
    """Return C for a threshold and B complementary pairs of which `has_bound` is true."""
    if threshold > 0.75:
        return 4 * (1 - threshold + 1 / (2 * num_halvings)) / (1 + 1 / num_halvings)
    return 1 / (2 * (2 * threshold - 1 - 1 / (2 * num_halvings)))


def largest_share(threshold: float, num_halvings: int) -> float:
    """Return the share of pairs that a half-sample may choose on average for C to be as it is.

    1/√3 for thresholds above ¾; up to there also t > min(½ + s², ½ + 1/(2B) + ¾ s²).
    Source: Shah and Samworth (2013), equation 8.
    """
    if threshold > 0.75:
        return 1 / math.sqrt(3)
    excess = threshold - 0.5
    bound = max(excess, 4 / 3 * (excess - 1 / (2 * num_halvings)))
    return min(1 / math.sqrt(3), math.sqrt(bound))


def choose_by_stability(
    setting: Setting[RowSampleT],
    strengths: Sequence[float],
    rule: StabilityRule,
    progress: Progress,
) -> PenaltyChoice:
    """Return the graph of the stable edges at the weakest strength that the bound allows.

    Half-samples that fail are left out and counted by cause. Where a column has no two different
    values in one, that half-sample says nothing of its pairs, and of all others what it says
    otherwise. A pair of which more than half say nothing, or so many that the rest bounds nothing,
    has no frequency and is no edge. If all are such, the strength is chosen by held-out rows
    instead.
    """
    paths: list[_Path] = []
    failures: Counter[str] = Counter()
    num_columns = setting.problem.num_columns
    num_pairs = num_columns * (num_columns - 1) // 2
    most_edges = _OVERSHOOT * rule.most_edges(num_pairs)
    for position, rows in enumerate(_halves(rule, setting)):
        progress.enter_part(position / rule.num_subsamples, (position + 1) / rule.num_subsamples)
        found = _path(setting, rows, strengths, most_edges, progress)
        if isinstance(found, str):
            failures[found] += 1
        else:
            paths.append(found)
    counted = sum((path.counted for path in paths), torch.zeros(num_columns, num_columns))
    if reason := _reason_against(rule, int(counted.fill_diagonal_(0).max())):
        choice = choose_by_held_out_rows(setting, [(setting.kind, strengths)], progress)
        return replace(choice, stability=_undetermined(rule, len(paths), failures, reason))
    return _stable(setting, strengths, rule, paths, failures)


@dataclass(frozen=True)
class _Path:
    """The graphs of a half-sample."""

    graphs: Tensor
    """bool (s, d, d)"""
    varies: Tensor
    """bool (d,): whether a column has two different values"""

    @property
    def counted(self) -> Tensor:
        """Whether it says something of each pair, 0 or 1 (d, d)."""
        varies = self.varies.to(torch.float64)
        return torch.outer(varies, varies)


def _path(
    setting: Setting[RowSampleT],
    rows: Tensor,
    strengths: Sequence[float],
    most_edges: float,
    progress: Progress,
) -> _Path | str:
    """Return the graphs of a half-sample, or why it has none."""
    varies = _varying(setting.problem.observations, rows)
    if isinstance(varies, str):
        return varies
    sample = _subsample(setting, rows, varies)
    graphs = progress.checkpoint.once(
        partial(_graphs, setting, sample, strengths, most_edges, progress)
    )
    return graphs if isinstance(graphs, str) else _Path(graphs.to_dense(), varies.cpu())


def _halves(rule: StabilityRule, setting: Setting[RowSampleT]) -> Iterator[Tensor]:
    """Yield the rows of complementary halves, of rows or of clusters, one after the other."""
    problem = setting.problem
    half = problem.num_independent // 2
    for _ in range(rule.num_subsamples // 2):
        order = torch.randperm(problem.num_independent, generator=problem.generator).to(
            problem.scale.device
        )
        for part in (order[:half], order[half : 2 * half]):
            if problem.clusters is None:
                yield part
            else:
                yield torch.isin(problem.clusters, part).nonzero().flatten()


def _varying(observations: Observations, rows: Tensor) -> Tensor | str:
    """Return bool (d,): the columns with two different observed values in these rows.

    Or what is wrong if there are no two of them, or if a column has hardly a cell: not even draws
    in its place would be a column then.
    """
    values, observed = observations.values[rows], observations.observed[rows]
    lowest = torch.where(observed, values, torch.inf).min(dim=0).values
    highest = torch.where(observed, values, -torch.inf).max(dim=0).values
    if observed.sum(dim=0).min() < 2:
        return "a column with fewer than two observed values"
    varies = lowest < highest
    if varies.sum() < 2:
        return "no two columns with two different observed values"
    return varies


def _subsample(setting: Setting[RowSampleT], rows: Tensor, varies: Tensor) -> RowSampleT:
    """Return the rows, with draws that know nothing of others for columns that do not vary.

    A constant column would make a fit run away, or take part in others' interactions; draws with
    the mean and variance that it has in the whole table do neither.
    """
    problem = setting.problem
    if varies.all():
        return problem.subsample(rows)
    observations = problem.observations
    mean, variance = observations.moments()
    normal = torch.randn(
        observations.values.shape, generator=problem.generator, dtype=torch.float64
    ).to(mean)
    draws = mean + variance.sqrt() * normal
    # Of columns that cannot be negative draws are not either.
    draws = torch.where(observations.lowest() >= 0, draws.abs(), draws)
    values = torch.where(varies | ~observations.observed, observations.values, draws)
    return replace(problem, observations=replace(observations, values=values)).subsample(rows)


def _graphs(
    setting: Setting[RowSampleT],
    sample: RowSampleT,
    strengths: Sequence[float],
    most_edges: float,
    progress: Progress,
) -> Tensor | str:
    """Return sparse bool (s, d, d): a graph for each strength, strong to weak.

    To the first that is too large; or why there are none.
    """
    cycles = setting.cycles(setting.start(), progress)
    graphs: list[Tensor] = []
    for strength in strengths:
        penalty = setting.penalty(strength, sample.num_rows)
        status = cycles.run(sample, penalty, setting.constraints(), _TOLERANCE, _MAX_CYCLES)
        if status is FitStatus.NON_FINITE:
            return "the objective was infinite or undefined"
        if status is FitStatus.MAX_ITERATIONS:
            return f"not converged after {_MAX_CYCLES} cycles"
        graphs.append(graph_of(cycles.augmented))
        if num_edges(cycles.augmented) > most_edges:
            break
    return torch.stack(graphs).cpu().to_sparse()


def _stable(
    setting: Setting[RowSampleT],
    strengths: Sequence[float],
    rule: StabilityRule,
    paths: Sequence[_Path],
    failures: Counter[str],
) -> PenaltyChoice:
    reached = min(len(path.graphs) for path in paths)
    counted = torch.stack([path.counted for path in paths]).sum(dim=0)
    is_known = counted >= _fewest(rule)
    inclusions = [_inclusion(paths, i, counted, is_known) for i in range(reached)]
    num_pairs = int(is_known.triu(1).sum())
    mean_edges = [float(inclusion.nansum()) / 2 for inclusion in inclusions]
    # That of the fewest half-samples of a pair is the largest.
    constant = bound_constant(rule.threshold, int(counted[is_known].min()) // 2)
    allowed = [i for i, q in enumerate(mean_edges) if q <= rule.most_edges(num_pairs)]
    chosen = allowed[-1] if allowed else 0
    graphs = [inclusion >= rule.threshold for inclusion in inclusions]
    path = tuple(
        PenaltyStep(
            kind=setting.kind,
            strength=strengths[i],
            criterion=constant * mean_edges[i] ** 2 / num_pairs,
            standard_error=None,
            num_edges=int(graphs[i].sum()) // 2,
            chosen=i == chosen,
        )
        for i in range(reached)
    )
    stability = Stability(
        n_requested=rule.num_subsamples,
        n_ok=len(paths),
        failures=dict(failures),
        threshold=rule.threshold,
        inclusion=inclusions[chosen].numpy(),
        counted=counted.to(torch.int64).numpy(),
        mean_edges=mean_edges[chosen],
        expected_false_edges=path[chosen].criterion,
        reason=None,
    )
    return PenaltyChoice(
        strengths[chosen],
        path,
        setting.start(),
        graph=graphs[chosen].to(setting.problem.scale.device),
        stability=stability,
    )


def _inclusion(paths: Sequence[_Path], position: int, counted: Tensor, is_known: Tensor) -> Tensor:
    """Return the share (d, d) of half-samples with each edge, NaN where too few say something."""
    edges = torch.stack([path.graphs[position].cpu() * path.counted for path in paths]).sum(dim=0)
    return torch.where(is_known, edges / counted, torch.nan).fill_diagonal_(0.0)


def _fewest(rule: StabilityRule) -> int:
    """Return the half-samples from which a frequency is given."""
    return next(n for n in range(rule.num_subsamples + 1) if _reason_against(rule, n) is None)


def _reason_against(rule: StabilityRule, num_ok: int) -> str | None:
    """Return why no frequencies can be given from so many half-samples; None if they can."""
    if num_ok < SMALLEST_SHARE_OK * rule.num_subsamples:
        cause = f"fewer than {SMALLEST_SHARE_OK:.0%}"
    elif not has_bound(rule.threshold, num_ok // 2):
        cause = f"too few to bound the false edges at a threshold of {rule.threshold:g}"
    else:
        return None
    return (
        f"{num_ok} of {rule.num_subsamples} half-samples have a graph, {cause}: no frequencies are "
        "given, and the strength was chosen by held-out rows"
    )


def _undetermined(
    rule: StabilityRule, num_ok: int, failures: Counter[str], reason: str
) -> Stability:
    return Stability(
        n_requested=rule.num_subsamples,
        n_ok=num_ok,
        failures=dict(failures),
        threshold=rule.threshold,
        inclusion=None,
        counted=None,
        mean_edges=None,
        expected_false_edges=None,
        reason=reason,
    )
