"""A finished estimation in a dozen lines: how it ended, what to know, the strongest edges."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from service.http.words import counted, in_clusters
from service.results.choices import TransformStep
from service.results.edges import Edge
from service.results.schemas import EstimationResult
from worker.artefacts.ground_truth import Pair
from worker.cli.printing import edge_table, print_ending, print_warnings

NUM_TOP_EDGES = 10


def print_network(
    console: Console,
    result: EstimationResult,
    edges: Sequence[Edge],
    truth: frozenset[Pair] | None = None,
) -> None:
    """Print how the fit ended, its warnings, its scores and its strongest edges."""
    print_fit(console, result)
    for score in result.scores:
        if score.auc is not None:
            console.print(f"AUC by {score.score}: {score.auc:.3f}", highlight=False)
    console.print(edge_table(edges, truth, f"{_found(result)}; the strongest {len(edges)}:"))
    if (said := result.uncertainty) is not None and said.reason is not None:
        console.print(f"No intervals: {said.reason}.", markup=False, highlight=False)


def print_fit(console: Console, result: EstimationResult) -> None:
    """Print how the fit ended, what of, and its warnings."""
    counts = result.counts
    print_ending(console, result.convergence.converged, result.convergence.message)
    strength = None if result.penalty is None else result.penalty.strength
    strength_text = "none" if strength is None else f"{strength:g}"
    cells = counts.n_rows * counts.n_variables
    console.print(
        f"{counted(counts.n_rows, 'row')}{in_clusters(counts.n_clusters)}, "
        f"{counted(counts.n_variables, 'variable')}, "
        f"{counts.n_missing / cells:.1%} of the cells missing; transform {_transform(result)}, "
        f"linear term {result.linear.choice}, penalty {strength_text}, seed {result.seed}.",
        highlight=False,
    )
    if result.transform_evidence:
        console.print(_compared(result.transform_evidence), markup=False, highlight=False)
    print_warnings(console, (warning.model_dump() for warning in result.warnings))


def _found(result: EstimationResult) -> str:
    """Return how many pairs are edges."""
    rule, said = result.edge_rule, result.uncertainty
    pairs = counted(rule.n_pairs, "pair")
    if said is None or said.reason is not None:
        return f"{rule.n_selected} of {pairs} selected"
    verdicts = f"{said.n_present} present, {said.n_absent} absent, {said.n_undecided} undecided"
    selected = "" if rule.n_selected == said.n_present else f"; {rule.n_selected} selected"
    return f"{pairs}: {verdicts} (false discovery rate {said.fdr:g}){selected}"


def _transform(result: EstimationResult) -> str:
    """Return the transform, or those that variables have."""
    applied = result.transform
    if not isinstance(applied, list):
        return applied
    counts = Counter(applied)
    return ", ".join(
        f"{name} ({counted(count, 'variable')})" for name, count in counts.most_common()
    )


def _compared(evidence: Sequence[TransformStep]) -> str:
    """Return the best transform for all variables, and by how much others differ from it."""
    densities = {
        "one for each variable" if isinstance(step.transform, list) else str(step.transform): (
            step.log_density,
            step.standard_error,
        )
        for step in evidence
        if step.log_density is not None and step.standard_error is not None
    }
    best, level = next(((n, d) for n, (d, error) in densities.items() if error == 0), ("none", 0.0))
    others = [
        f"{name} {density - level:+.2f} ± {error:.2f}"
        for name, (density, error) in densities.items()
        if name != best
    ]
    rest = f"; differences from it: {'; '.join(others)}" if others else ""
    return f"Held-out log density, nats per row: {best} {level:.2f}{rest}."
