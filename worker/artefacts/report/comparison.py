"""What a report says of models that were compared on one table."""

from collections.abc import Iterator, Sequence

from service.http.words import counted, in_clusters
from service.results.comparison_result import (
    ComparedModelRead,
    ComparedPairRead,
    ComparisonResult,
)
from service.results.outcome import Artefact
from worker.artefacts.report.section import (
    MOST_ROWS,
    Row,
    Section,
    Table,
    extent,
    number,
    pictures,
)

_FIGURES = {
    "comparison": "By how much each model is behind the best, and the strongest pairs, if any, "
    "that only some models select.",
}


def comparison_section(result: ComparisonResult, artefacts: Sequence[Artefact]) -> Section:
    """Return what to say of it, with the figure among its `artefacts`."""
    places = {model.name: str(place) for place, model in enumerate(result.models, start=1)}
    shown = result.disputed[:MOST_ROWS]
    tables = [
        Table(
            "Models, the best first: mean log density of held-out rows, in nats per row and the "
            "table's units, and by how much it is less than the best one's, with standard errors.",
            ("model", "log density", "±", "behind", "±", "pairs selected"),
            [_model(place, model) for place, model in enumerate(result.models, start=1)],
        )
    ]
    if shown:
        which = "pairs that only some models select, the strongest"
        tables.append(
            Table(
                extent(len(shown), len(result.disputed), which, "pairs.csv"),
                ("pair", "selected by models"),
                [_pair(pair, places) for pair in shown],
            )
        )
    return Section(
        heading=f"Models of {result.dataset.name}",
        verdict=" ".join(_verdict(result)),
        facts=list(_facts(result)),
        pictures=pictures(artefacts, _FIGURES),
        tables=tables,
        methods=(
            f"Each model was fitted without each of {result.n_folds} parts of the rows, the same "
            "for all, and judged by the log density of the observed cells of the rows left out; "
            "differences of two models are taken row by row. What a fit chooses from the data was "
            "chosen anew without each part."
        ),
    )


def _verdict(result: ComparisonResult) -> Iterator[str]:
    ranked = [model for model in result.models if model.log_density is not None]
    if ranked:
        yield (
            f"Of {counted(len(result.models), 'model')} {ranked[0].name} describes rows that it "
            f"has not seen best: {ranked[0].log_density:.4g} nats per row."
        )
    else:
        yield "No model has a density, so that none is the best."
    if len(ranked) > 1:
        yield (
            f"Next is {ranked[1].name}, behind by {ranked[1].behind:.3g} ± "
            f"{ranked[1].behind_standard_error:.2g}; less than three standard errors decide "
            "nothing."
        )
    yield (
        f"Of {counted(result.n_pairs, 'pair')} all models select {len(result.agreed)}, and only "
        f"some {len(result.disputed)}."
    )


def _facts(result: ComparisonResult) -> Iterator[str]:
    rows = f"{counted(result.n_rows, 'row')}{in_clusters(result.n_clusters)}"
    yield f"{rows}, {counted(len(result.names), 'variable')}."
    for place, model in enumerate(result.models, start=1):
        if model.reason is not None:
            yield f"Model {place}: {model.reason.rstrip('.')}."
        if model.fit is None:
            continue
        if not model.fit.converged:
            yield f"Model {place}: the fit to all rows has not converged."
        for warning in model.fit.warnings:
            yield f"Model {place}: {warning.message}"


def _model(place: int, model: ComparedModelRead) -> Row:
    cells = [
        number(model.log_density, ".4f"),
        number(model.standard_error, ".2g"),
        number(model.behind, ".4f"),
        number(model.behind_standard_error, ".2g"),
        "" if model.fit is None else str(model.fit.n_selected),
    ]
    return Row(f"{place} {model.name}", cells)


def _pair(pair: ComparedPairRead, places: dict[str, str]) -> Row:
    selecting = [places[edge.model] for edge in pair.edges if edge.selected]
    return Row(f"{pair.source} – {pair.target}", [", ".join(selecting)])
