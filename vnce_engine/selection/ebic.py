"""Choosing a graph by the extended Bayesian information criterion, each graph fitted anew.

An unnormalised model has no likelihood to compute. But the NCE objective is one: n times it is the
log likelihood of a logistic regression that tells n data rows from nu n noise rows, with the free
constant c for its intercept. Which class a row has is fixed beforehand, and for such case-control
data the regression's likelihood ratio is the right one for everything but the intercept (Prentice
and Pyke, 1979): twice its logarithm is chi-squared if the smaller graph is true, at any nu. So

    eBIC = -2 n J + |E| (log n + 4 gamma log d)

with J the objective of a fit without a penalty to the graph E, n the number of data rows (however
many noise rows there are, the data carry no more information than theirs) and the term in gamma
for the number of graphs of each size (Foygel and Drton, 2010). With missing cells J is VNCE's,
very nearly that of NCE (see `posterior.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from vnce_engine.contrastive.prepared import Fit, RowSampleT
from vnce_engine.distributions.quadratic import num_parameters
from vnce_engine.inference.result import PenaltyStep
from vnce_engine.optim.constraints import Constraints
from vnce_engine.penalties.penalty import Penalty
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.selection.choice import PenaltyChoice, graph_of, num_edges
from vnce_engine.selection.setting import Setting

_PATH_TOLERANCE = 1e-2
# n J must be right to a fraction of log n.
_REFIT_TOLERANCE = 3e-3
# A run goes in parts of so many cycles; noise rows take new draws with each.
_CYCLES_OF_A_PART, _NUM_PARTS = 3, 10


def extended_bic(
    objective: float, num_edges: int, num_rows: int, num_columns: int, gamma: float
) -> float:
    """Return the criterion, small for a good graph, from the objective in nats a data row."""
    price = math.log(num_rows) + 4 * gamma * math.log(num_columns)
    return -2 * num_rows * objective + num_edges * price


def choose_by_ebic(
    setting: Setting[RowSampleT], strengths: Sequence[float], gamma: float, progress: Progress
) -> PenaltyChoice:
    """Fit the graph of every strength anew without a penalty; return the one of least eBIC.

    The path, from strong to weak, ends before a graph with as many parameters as there are rows,
    for a fit without a penalty would not be bounded. Raises `ValueError` where none has fewer.
    """
    problem = setting.problem
    num_rows, num_columns = problem.num_rows, problem.num_columns
    sample = problem.sample
    fit = setting.cycles(setting.start(), progress)
    steps: list[PenaltyStep] = []
    refits: list[Tensor] = []
    has_settled: list[bool] = []
    for position, strength in enumerate(strengths):
        progress.enter_part(position / len(strengths), (position + 1) / len(strengths))
        penalty = setting.penalty(strength, num_rows)
        _run(fit, sample, penalty, setting.constraints(), _PATH_TOLERANCE)
        edges = num_edges(fit.augmented)
        if num_parameters(num_columns, edges) >= num_rows:
            break
        constraints = setting.constraints(graph_of(fit.augmented))
        refit = setting.cycles(constraints.project(fit.augmented), progress)
        none = setting.penalty(None, num_rows)
        status = _run(refit, sample, none, constraints, _REFIT_TOLERANCE)
        has_settled.append(status is FitStatus.CONVERGED)
        objective = refit.objective_path[-1] if refit.objective_path else -math.inf
        # A barrier against an indefinite K is no part of the criterion.
        objective += float(none.value(refit.augmented[:-1, :-1]))
        criterion = extended_bic(objective, edges, num_rows, num_columns, gamma)
        steps.append(PenaltyStep(setting.kind, strength, criterion, None, edges, chosen=False))
        refits.append(refit.augmented)
    if not steps:
        raise ValueError(
            f"`selection='ebic'` needs a strength that leaves fewer parameters than the {num_rows} "
            f"rows, got {strengths[0]:g} at most"
        )
    # A refit that has not settled stands back where any other has: its criterion is too large, or
    # of an objective that has no maximum.
    best = min(range(len(steps)), key=lambda i: (not has_settled[i], steps[i].criterion))
    best = _strongest_of_its_graph(best, refits, has_settled)
    path = tuple(replace(step, chosen=i == best) for i, step in enumerate(steps))
    return PenaltyChoice(
        path[best].strength,
        path,
        refits[best],
        graph=graph_of(refits[best]),
        is_settled=any(has_settled),
    )


def _strongest_of_its_graph(
    best: int, refits: Sequence[Tensor], has_settled: Sequence[bool]
) -> int:
    """Return the first fit to the graph of the best one, settled if that is.

    Their criteria differ by where fits ended, which would choose a strength, even the grid's last.
    """
    graph = graph_of(refits[best])
    return next(
        i
        for i, refit in enumerate(refits)
        if has_settled[i] == has_settled[best] and torch.equal(graph_of(refit), graph)
    )


def _run(
    fit: Fit[RowSampleT],
    sample: RowSampleT,
    penalty: Penalty,
    constraints: Constraints,
    tolerance: float,
) -> FitStatus:
    for _ in range(_NUM_PARTS):
        status = fit.run(sample, penalty, constraints, tolerance, _CYCLES_OF_A_PART)
        if status is not FitStatus.MAX_ITERATIONS:
            break
    return status
