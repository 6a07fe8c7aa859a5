"""What came of a job, whatever its kind, in a few lines."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console

from service.http.words import counted
from service.results.edges import Edge
from service.results.schemas import EstimationResult
from worker.artefacts.ground_truth import Pair
from worker.cli.client import JsonObject
from worker.cli.exit_codes import ExitCode
from worker.cli.flag_names import in_flags
from worker.cli.network_summary import print_network
from worker.cli.printing import listing, one_a_kind, print_ending, print_warnings

# Longer tables are files of the result.
_MOST_ROWS = 60
_PLAIN: dict[str, Any] = {"markup": False, "highlight": False}


def print_result(
    console: Console,
    document: JsonObject,
    edges: Sequence[Edge] = (),
    truth: frozenset[Pair] | None = None,
) -> None:
    """Print a result; of a network with its strongest `edges`, and which are of the true graph."""
    match document["kind"]:
        case "estimation":
            print_network(console, EstimationResult.model_validate(document), edges, truth)
        case "simulation":
            console.print(
                f"{document['dataset_id']}: {counted(document['n_rows'], 'row')}, "
                f"{counted(len(document['names']), 'variable')}, "
                f"{counted(document['n_missing'], 'cell')} missing; its true graph of "
                f"{counted(document['n_edges'], 'edge')} is attached.",
                highlight=False,
            )
        case "scoring":
            rows = [(score["score"], *_score(score)) for score in document["scores"]]
            console.print(listing(("score", "AUC", "average precision"), rows))
        case "mixture":
            _print_mixture(console, document)
        case "experiment":
            _print_experiment(console, document)
        case "bootstrap":
            _print_bootstrap(console, document)
        case "comparison":
            _print_comparison(console, document)
        case "difference":
            _print_difference(console, document)
        case _:
            console.print(document["label"], markup=False, highlight=False)


def exit_code(document: JsonObject) -> ExitCode:
    """Return the exit status that a result deserves: a fit may not have converged."""
    is_fit = "convergence" in document
    has_converged = not is_fit or document["convergence"]["converged"]
    return ExitCode.OK if has_converged else ExitCode.NOT_CONVERGED


def _print_mixture(console: Console, document: JsonObject) -> None:
    convergence, counts = document["convergence"], document["counts"]
    print_ending(console, convergence["converged"], convergence["message"])
    console.print(
        f"{counted(counts['n_fitted_values'], 'value')} of {document['name']}, "
        f"{counted(counts['n_missing'], 'row')} left out; {document['form']} mixture, "
        f"sigma_1 {document['sigma_1']:g}, seed {document['seed']}.",
        markup=False,
        highlight=False,
    )
    print_warnings(console, document["warnings"])
    found = [("theta", document["theta"]), ("c", document["log_partition"])]
    rows = [
        (name, estimate["value"], estimate["standard_error"])
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
        rows = table["rows"][:_MOST_ROWS]
        console.print(table["title"], style="bold", markup=False, highlight=False)
        console.print(listing(table["columns"], rows))
        if left := len(table["rows"]) - len(rows):
            console.print(f"… and {left} more in tables/{table['name']}.csv", highlight=False)
    _print_parts(console, document)


def _print_bootstrap(console: Console, document: JsonObject) -> None:
    edges = document["edges"]
    is_debiased = any(edge["debiased"]["n"] for edge in edges)
    spread = "debiased" if is_debiased else "partial_correlation"
    rows = [
        (
            edge["source"],
            edge["target"],
            "yes" if edge["selected"] else "no",
            _number(edge["inclusion"]),
            *(_number(edge[spread][field]) for field in ("mean", "lower", "upper")),
        )
        for edge in edges[:_MOST_ROWS]
    ]
    mean = "debiased mean" if is_debiased else "mean as estimated"
    headings = ("variable", "variable", "selected", "inclusion", mean, "lower", "upper")
    console.print(listing(headings, rows))
    if left := len(edges) - len(rows):
        console.print(f"… and {left} more in bootstrap.csv", highlight=False)
    failed = "".join(
        f"\n{count} failed: {cause}" for cause, count in document["resample_failures"].items()
    )
    console.print(
        f"{document['n_ok']} of {counted(document['n_requested'], 'resample')} have a network."
        f"{failed}",
        **_PLAIN,
    )
    if document["reason"] is not None:
        console.print(f"No shares and intervals: {document['reason']}.", **_PLAIN)
    for said, field in (
        ("Rank correlation with the estimation, of pairs", "rank_correlation"),
        ("Rank correlation with the estimation, of strengths", "strength_rank_correlation"),
        (f"Share of its {document['n_selected']} strongest pairs that stay so", "top_kept"),
    ):
        if document[field] is not None:
            console.print(f"{said}: {_number(document[field])}.", **_PLAIN)
    if (stability := document["stability"]) is not None:
        shares = [
            f"{said} {_number(stability[field]['coefficient']) or 'unknown'}"
            for said, field in (
                ("pairs", "edges"),
                ("strengths", "strength"),
                ("expected influences", "expected_influence"),
            )
        ]
        told = "Correlation stability, the share of rows that can be left out"
        console.print(f"{told}: {', '.join(shares)}.", **_PLAIN)
    _print_parts(console, document)


def _print_comparison(console: Console, document: JsonObject) -> None:
    models = document["models"]
    numbers = {model["name"]: str(place) for place, model in enumerate(models, start=1)}
    rows = [
        (
            numbers[model["name"]],
            model["name"],
            *(_number(model[field]) for field in ("log_density", "behind")),
            "" if model["behind"] is None else f"± {_number(model['behind_standard_error'])}",
            "" if model["fit"] is None else model["fit"]["n_selected"],
        )
        for model in models
    ]
    headings = ("", "model", "log density", "behind the best", "", "pairs selected")
    console.print(listing(headings, rows))
    by_remark: dict[str, list[str]] = {}
    for model in models:
        for remark in _remarks(model):
            by_remark.setdefault(remark, []).append(numbers[model["name"]])
    for remark, concerned in by_remark.items():
        console.print(f"{', '.join(concerned)}: {remark}", **_PLAIN)
    disputed = document["disputed"]
    if disputed:
        pairs = [
            (
                pair["source"],
                pair["target"],
                ", ".join(numbers[edge["model"]] for edge in pair["edges"] if edge["selected"]),
            )
            for pair in disputed[:_MOST_ROWS]
        ]
        console.print(listing(("variable", "variable", "selected by"), pairs))
    if len(disputed) > _MOST_ROWS:
        console.print(f"… and {len(disputed) - _MOST_ROWS} more in pairs.csv", highlight=False)
    console.print(
        f"Mean held-out log density of {counted(document['n_rows'], 'row')}, nats per row, "
        f"{document['n_folds']} folds. {len(document['agreed'])} of "
        f"{counted(document['n_pairs'], 'pair')} are selected by all models, {len(disputed)} only "
        "by some.",
        **_PLAIN,
    )
    _print_parts(console, document)


def _remarks(model: JsonObject) -> Iterator[str]:
    """Yield what to know of a model that was compared."""
    if model["reason"] is not None:
        yield in_flags(model["reason"])
    if (fit := model["fit"]) is None:
        return
    if not fit["converged"]:
        yield "the fit to all rows has not converged."
    if fit["n_unconverged_folds"]:
        yield f"fits without a fold that have not converged: {fit['n_unconverged_folds']}."
    for code, line in one_a_kind(fit["warnings"]):
        yield f"{line} [{code}]"


def _print_difference(console: Console, document: JsonObject) -> None:
    fields = ("first", "second", "difference", "lower", "upper", "z", "q_value")
    edges, names = document["edges"], [document[side]["label"] for side in ("first", "second")]
    rows = [
        (
            edge["source"],
            edge["target"],
            *(_number(edge[field]) for field in fields),
            "yes" if edge["differs"] else "no",
        )
        for edge in edges[:_MOST_ROWS]
    ]
    console.print(listing(("variable", "variable", *names, *fields[2:], "differs"), rows))
    if left := len(edges) - len(rows):
        console.print(f"… and {left} more in difference.csv", highlight=False)
    lines = [
        f"{document['n_differing']} of {counted(len(edges), 'pair')} found to differ at a false "
        f"discovery rate of {document['fdr']:g}."
    ]
    if document["n_unlabelled"]:
        lines.append(f"Rows in neither group, left out: {document['n_unlabelled']}.")
    for name, test in (
        ("Largest |z|", document["largest_z"]),
        ("Sum of z²", document["sum_of_squares"]),
    ):
        p_value = "" if test["p_value"] is None else f", p {test['p_value']:.3g}"
        lines.append(f"{name}: {_number(test['statistic'])}{p_value}.")
    if document["reason"] is not None:
        lines.append(f"No p-values of the global tests: {document['reason']}.")
    lines += [
        f"{count} of {counted(document['n_permutations'], 'permutation')} failed: {cause}"
        for cause, count in document["permutation_failures"].items()
    ]
    console.print("\n".join(lines), markup=False, highlight=False)
    _print_parts(console, document)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _print_parts(console: Console, document: JsonObject) -> None:
    console.print(
        f"{document['n_succeeded']} of {counted(document['n_parts'], 'part')} succeeded, on "
        f"{counted(document['n_workers'], 'worker process', 'worker processes')}, in "
        f"{document['part_seconds']:.0f} s of CPU time; seed {document['seed']}.",
        highlight=False,
    )
    for failure in document["failures"]:
        reason = "cancelled" if failure["error"] is None else failure["error"]["detail"]
        console.print(f"no result: {failure['label']}: {reason}", markup=False, highlight=False)
