"""`vnce graph`: the graph of a finished job at another threshold, drawn here without a new fit."""

from dataclasses import replace
from pathlib import Path

from service.http.words import counted
from service.results.vocabulary import EdgeRule
from worker.artefacts.exports.graph import graph_artefacts
from worker.artefacts.figures.drawing import label
from worker.artefacts.figures.network import network_figures
from worker.artefacts.fitted import NO_PARTIAL_CORRELATIONS
from worker.cli.client import Client
from worker.cli.exit_codes import ExitCode
from worker.cli.printing import OUT, print_error
from worker.cli.result_folder import say_written, write_files


def redraw(client: Client, job_id: str, threshold: float, out: Path) -> ExitCode:
    """Write below `out` the graph files and network figures of the pairs at `threshold`."""
    edges = [replace(edge, selected=True) for edge in client.edges(job_id, min_weight=threshold)]
    job, result = client.job(job_id), client.result(job_id)
    if not result["diagnostics"]["is_positive_definite"]:
        print_error(NO_PARTIAL_CORRELATIONS)
        return ExitCode.MISUSE
    names = result["names"]
    about = f"{label(result['dataset']['name'])}, {job['spec']['estimator']['kind'].upper()}"
    files = {
        file.name: file.content
        for file in (
            *graph_artefacts(names, edges, EdgeRule.THRESHOLD, threshold),
            *network_figures(
                names,
                edges,
                rule=f"|partial correlation| ≥ {threshold:g}",
                truth=None,
                title=f"Network: {about}",
                reason=None,
            ),
        )
    }
    write_files(out, files)
    pairs = counted(result["edge_rule"]["n_pairs"], "pair")
    OUT.print(f"{len(edges)} of {pairs} have |partial correlation| ≥ {threshold:g}.")
    say_written(OUT, out, files)
    return ExitCode.OK
