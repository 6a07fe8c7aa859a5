"""A finished estimation in a dozen lines: how it ended, what to know, the strongest edges."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from service.results.edges import Edge
from service.results.mixture_result import MixtureResult
from service.results.schemas import EstimationResult
from worker.artefacts.ground_truth import Pair
from worker.cli.exit_codes import ExitCode
from worker.cli.printing import edge_table, one_a_kind

NUM_TOP_EDGES = 10


def print_summary(
    console: Console,
    result: EstimationResult,
    edges: Sequence[Edge],
    truth: frozenset[Pair] | None = None,
) -> None:
    """Print how the fit ended, its warnings, its scores and its strongest edges."""
    counts, rule = result.counts, result.edge_rule
    ending = "[green]converged[/]" if result.convergence.converged else "[bold red]not converged[/]"
    console.print(f"{ending}: {escape(result.convergence.message)}", highlight=False)
    strength = None if result.penalty is None else result.penalty.strength
    strength_text = "none" if strength is None else f"{strength:g}"
    cells = counts.n_rows * counts.n_variables
    console.print(
        f"{counts.n_rows} rows, {counts.n_variables} variables, "
        f"{counts.n_missing / cells:.1%} of the cells missing; transform {result.transform}, "
        f"linear term {result.linear.choice}, penalty {strength_text}, seed {result.seed}.",
        highlight=False,
    )
    for code, line in one_a_kind(warning.model_dump() for warning in result.warnings):
        console.print(f"[yellow]warning[/] {escape(line)} \\[{code}]", highlight=False)
    for score in result.scores:
        if score.auc is not None:
            console.print(f"AUC by {score.score}: {score.auc:.3f}", highlight=False)
    top = edges[:NUM_TOP_EDGES]
    title = f"{rule.n_selected} of {rule.n_pairs} pairs selected; the strongest {len(top)}:"
    console.print(edge_table(top, truth, title))


def exit_code(result: EstimationResult | MixtureResult) -> ExitCode:
    """Return the exit status that an estimation deserves."""
    return ExitCode.OK if result.convergence.converged else ExitCode.NOT_CONVERGED
