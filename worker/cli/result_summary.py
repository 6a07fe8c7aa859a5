"""What came of a job that is no estimation, in a few lines."""

from rich.console import Console

from service.http.words import counted
from worker.cli.client import JsonObject
from worker.cli.exit_codes import ExitCode
from worker.cli.printing import listing, one_a_kind

# Longer tables are files of the result.
_MOST_ROWS = 60


def print_other_summary(console: Console, document: JsonObject) -> None:
    """Print the result of a mixture, a simulation, a scoring or an experiment."""
    match document["kind"]:
        case "simulation":
            console.print(
                f"{document['dataset_id']}: {document['n_rows']} rows, "
                f"{len(document['names'])} variables, {document['n_missing']} cells missing; its "
                f"true graph of {document['n_edges']} edges is attached.",
                highlight=False,
            )
        case "scoring":
            rows = [(score["score"], *_score(score)) for score in document["scores"]]
            console.print(listing(("score", "AUC", "average precision"), rows))
        case "mixture":
            _print_mixture(console, document)
        case "experiment":
            _print_experiment(console, document)
        case _:
            console.print(document["label"], markup=False, highlight=False)


def other_exit_code(document: JsonObject) -> ExitCode:
    """Return a finished job's exit status: a mixture's fit may not have converged."""
    if document["kind"] == "mixture" and not document["convergence"]["converged"]:
        return ExitCode.NOT_CONVERGED
    return ExitCode.OK


def _print_mixture(console: Console, document: JsonObject) -> None:
    convergence, counts = document["convergence"], document["counts"]
    ending = "converged" if convergence["converged"] else "not converged"
    console.print(f"{ending}: {convergence['message']}", markup=False, highlight=False)
    console.print(
        f"{counts['n_fitted_values']} values of {document['name']}, "
        f"{counted(counts['n_missing'], 'row')} left out; {document['form']} mixture, "
        f"sigma_1 {document['sigma_1']:g}, seed {document['seed']}.",
        markup=False,
        highlight=False,
    )
    for _, line in one_a_kind(document["warnings"]):
        console.print(f"warning {line}", markup=False, highlight=False)
    found = [("theta", document["theta"]), ("c", document["log_partition"])]
    rows = [
        (name, _text(estimate["value"]), _text(estimate["standard_error"]))
        for name, estimate in found
        if estimate is not None
    ]
    console.print(listing(("parameter", "estimate", "standard error"), rows))
    weights = document["weights"]
    console.print(
        f"weights: {weights['known']:.3f} known, {weights['free']:.3f} free", highlight=False
    )


def _score(score: JsonObject) -> tuple[str, str]:
    if score["auc"] is None:
        return score["reason"], ""
    return f"{score['auc']:.3f}", f"{score['average_precision']:.3f}"


def _print_experiment(console: Console, document: JsonObject) -> None:
    for table in document["tables"]:
        rows = [[_text(value) for value in row] for row in table["rows"][:_MOST_ROWS]]
        console.print(table["title"], style="bold", markup=False, highlight=False)
        console.print(listing(table["columns"], rows))
        if left := len(table["rows"]) - len(rows):
            console.print(f"… and {left} more in tables/{table['name']}.csv", highlight=False)
    console.print(
        f"{document['n_succeeded']} of {document['n_parts']} parts succeeded, on "
        f"{counted(document['n_workers'], 'worker process', 'worker processes')}, in "
        f"{document['part_seconds']:.0f} s of CPU time; seed {document['seed']}.",
        highlight=False,
    )
    for failure in document["failures"]:
        reason = "cancelled" if failure["error"] is None else failure["error"]["detail"]
        console.print(f"no result: {failure['label']}: {reason}", markup=False, highlight=False)


def _text(value: str | float | None) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
