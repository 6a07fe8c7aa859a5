"""What an estimation leaves, from its document to its files."""

import csv
import json
from collections import Counter
from dataclasses import replace
from io import BytesIO, StringIO

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from service.datasets.schemas import DatasetWarning
from service.datasets.vocabulary import WarningCode
from service.results.outcome import Outcome
from service.results.vocabulary import EdgeRule, FitStatus, Verdict
from tests.result_files import GRAPH_TYPES, NETWORK_FILES, SCORED_FILES, TABLE_TYPES, TABLES
from tests.worker.jobs.estimation.runs import RING, MakeRequest, files_of, ignore, load
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.fitted import to_array
from worker.cli.printing import edge_table
from worker.jobs.estimation import (
    FitCancelledError,
    estimate,
)


@pytest.fixture(scope="module")
def outcome(make_request: MakeRequest) -> Outcome:
    return estimate(make_request(ground_truth=RING), ignore)


@pytest.fixture(scope="module")
def again(make_request: MakeRequest) -> Outcome:
    """Return what the request of `outcome` gives once more, beside the checkpoint of another."""
    others = Checkpoint()
    others.begin_fit("another table")
    others.once(lambda: 1.0)
    checkpoint = Checkpoint.load(others.dump())
    return estimate(replace(make_request(ground_truth=RING), checkpoint=checkpoint), ignore)


@pytest.fixture(scope="module")
def unscored(make_request: MakeRequest) -> tuple[Outcome, list[FitStep]]:
    """Return what there is without a true graph, and the steps that were reported."""
    steps: list[FitStep] = []
    return estimate(make_request(), steps.append), steps


def test_document_edges_and_files_tell_the_same_numbers(outcome: Outcome) -> None:
    document = outcome.document
    precision = np.array(document.precision)
    assert np.array_equal(load(outcome, "precision.npy"), precision)
    rho = load(outcome, "partial-correlations.npy")
    assert np.array_equal(rho, rho.T)
    place = {name: i for i, name in enumerate(document.names)}
    for edge in outcome.edges:
        i, j = place[edge.source], place[edge.target]
        assert edge.precision == precision[i, j]
        assert edge.partial_correlation == rho[i, j]
        assert edge.selected == (edge.verdict is Verdict.PRESENT)


@pytest.fixture(scope="module")
def indefinite(make_request: MakeRequest) -> Outcome:
    """Return an estimate of four columns, two of them heavy-tailed products, by score matching."""
    rng = np.random.default_rng(4)
    X = rng.exponential(size=(30, 4))
    X[:, 1] = X[:, 0] * rng.exponential(size=30)
    table = pa.table(list(X.T), ["a", "体重", "=c", "d d"])
    estimator = {"kind": "score-matching", "penalty": None}
    return estimate(make_request(table, RING, estimator=estimator), ignore)


def test_no_output_of_an_indefinite_k_has_partial_correlations_or_selected_pairs(
    indefinite: Outcome,
) -> None:
    document, files = indefinite.document, files_of(indefinite)
    assert not document.diagnostics.is_positive_definite
    assert {edge.partial_correlation for edge in indefinite.edges} == {None}
    assert document.edge_rule.n_selected == 0
    assert document.edge_rule.decided_by is EdgeRule.THRESHOLD
    assert "not positive definite" in document.edge_rule.text
    off = ~np.eye(4, dtype=bool)
    assert np.isnan(load(indefinite, "partial-correlations.npy")[off]).all()
    assert "nan" not in files["partial-correlations.csv"].decode().lower()
    columns = parquet.read_table(BytesIO(files["partial-correlations.parquet"])).columns
    assert [column.null_count for column in columns] == [3] * 4
    matrix = json.loads(files["partial-correlations.json"])
    assert {value for row in matrix["values"] for value in row} == {None, 1.0}
    assert "not positive definite" in matrix["reason"]
    for ending in GRAPH_TYPES:
        named = b"partial_correlation" in files[f"graph.{ending}"]
        assert named == (ending == "csv")
    assert "partial correlation" not in files["figures/heatmap.svg"].decode()
    assert "no pair is selected" in files["figures/network.svg"].decode()


def test_how_sure_edges_are_is_told_in_all_and_of_each(outcome: Outcome) -> None:
    said, rule = outcome.document.uncertainty, outcome.document.edge_rule
    assert said is not None
    verdicts = Counter(edge.verdict for edge in outcome.edges)
    counts = {"present": said.n_present, "absent": said.n_absent, "undecided": said.n_undecided}
    assert counts == {verdict: verdicts[verdict] for verdict in Verdict}
    assert (said.reason, said.fdr) == (None, 0.1)
    assert rule.decided_by is EdgeRule.FALSE_DISCOVERY_RATE
    assert rule.n_selected == said.n_present
    assert "q-value (Benjamini-Hochberg) is at most 0.1" in rule.text
    for edge in outcome.edges:
        assert edge.lower <= edge.debiased <= edge.upper
        assert 0 <= edge.p_value <= edge.q_value <= 1


def test_each_variable_has_its_place_in_the_network(outcome: Outcome) -> None:
    rows = list(csv.DictReader(StringIO(files_of(outcome)["variables.csv"].decode())))
    variables = outcome.document.variables
    assert [variable.name for variable in variables] == outcome.document.names
    for variable, row in zip(variables, rows, strict=True):
        of_variable = [
            edge for edge in outcome.edges if variable.name in (edge.source, edge.target)
        ]
        present = [edge for edge in of_variable if edge.verdict is Verdict.PRESENT]
        assert variable.degree == len(present)
        sizes = sum(abs(edge.debiased) for edge in present)
        assert variable.strength.value == pytest.approx(sizes, rel=1e-12)
        influence = sum(edge.debiased for edge in of_variable)
        assert variable.expected_influence.value == pytest.approx(influence, rel=1e-12)
        assert variable.predictability.lower < variable.predictability.value < 1
        assert float(row["predictability_upper"]) == variable.predictability.upper


def test_an_estimator_without_standard_errors_says_so(indefinite: Outcome) -> None:
    said = indefinite.document.uncertainty
    assert said is not None
    assert said.reason == "the estimator has no standard errors"
    assert said.n_present is None
    assert {edge.verdict for edge in indefinite.edges} == {None}


def test_pairs_of_an_indefinite_k_are_ranked_and_scored(indefinite: Outcome) -> None:
    K = np.array(indefinite.document.precision)
    scaled = -K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    place = {name: i for i, name in enumerate(indefinite.document.names)}
    sizes = [abs(scaled[place[edge.source], place[edge.target]]) for edge in indefinite.edges]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 1
    assert all(score.auc is not None for score in indefinite.document.scores)


def test_the_terminal_tells_scaled_interactions_from_partial_correlations(
    outcome: Outcome, indefinite: Outcome
) -> None:
    headings = [
        [str(column.header) for column in edge_table(edges, None, "").columns]
        for edges in (outcome.edges, indefinite.edges)
    ]
    assert headings == [
        ["rank", "edge", "partial corr.", "95 % interval", "q", "verdict", "rows"],
        ["rank", "edge", "scaled interaction", "K", "selected", "rows"],
    ]


def test_edges_are_all_pairs_ranked_and_counted(outcome: Outcome, small_table: pa.Table) -> None:
    sizes = [abs(edge.partial_correlation) for edge in outcome.edges]
    assert len(sizes) == 6
    assert sizes == sorted(sizes, reverse=True)
    both = (
        small_table.column("a").is_valid().to_numpy()
        & small_table.column("=c").is_valid().to_numpy()
    )
    edge = next(edge for edge in outcome.edges if {edge.source, edge.target} == {"a", "=c"})
    assert edge.n_pairwise == both.sum()


def test_observed_cells_come_back_to_the_last_bit(outcome: Outcome, small_table: pa.Table) -> None:
    X, completed = to_array(small_table), load(outcome, "imputations.npy")
    observed = ~np.isnan(X)
    assert completed[observed].tobytes() == X[observed].tobytes()
    assert np.isfinite(completed).all()
    imputed = json.loads(files_of(outcome)["imputations.json"])["imputed"]
    assert len(imputed) == (~observed).sum() == outcome.document.counts.n_missing


@pytest.mark.slow
def test_every_file_is_made_and_no_other(
    outcome: Outcome, unscored: tuple[Outcome, list[FitStep]]
) -> None:
    assert files_of(outcome).keys() == NETWORK_FILES | SCORED_FILES
    assert files_of(unscored[0]).keys() == NETWORK_FILES


def test_files_are_of_the_media_types_of_their_endings(outcome: Outcome) -> None:
    made = {artefact.name: artefact.media_type for artefact in outcome.artefacts}
    types = {f"{stem}.{ending}": name for stem in TABLES for ending, name in TABLE_TYPES.items()}
    types |= {f"graph.{ending}": name for ending, name in GRAPH_TYPES.items()}
    assert {name: made[name] for name in types} == types


def test_nothing_in_json_is_not_a_number(outcome: Outcome) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    for name, content in files_of(outcome).items():
        if name.endswith(".json"):
            json.loads(content, parse_constant=refuse)
    json.loads(outcome.document.model_dump_json(), parse_constant=refuse)


def test_scores_are_those_of_the_curves(outcome: Outcome) -> None:
    for score in outcome.document.scores:
        assert json.loads(files_of(outcome)[f"roc/{score.score}.json"])["auc"] == score.auc
        assert score.auc is not None


@pytest.mark.slow
def test_the_same_request_gives_the_same_result(again: Outcome, outcome: Outcome) -> None:
    assert files_of(again) == files_of(outcome)
    timeless = {"exclude": {"timing"}}
    assert again.document.model_dump(**timeless) == outcome.document.model_dump(**timeless)


@pytest.mark.slow
def test_only_the_chosen_variables_are_used(make_request: MakeRequest) -> None:
    outcome = estimate(make_request(ground_truth=RING, variables=["a", "体重", "d d"]), ignore)
    assert outcome.document.names == ["a", "体重", "d d"]
    curve = json.loads(files_of(outcome)["roc/abs_precision.json"])
    assert (curve["n_pairs"], curve["n_true_edges"]) == (3, 2)


@pytest.mark.slow
def test_choosing_leaves_its_evidence(make_request: MakeRequest) -> None:
    model = {"kind": "truncated-gaussian", "linear": "auto"}
    document = estimate(make_request(model=model, estimator={"kind": "vnce"}), ignore).document
    assert document.linear.evidence is not None
    (chosen,) = [step for step in document.penalty.path if step.chosen]
    assert (document.penalty.kind, document.penalty.fitted_kind) == ("auto", chosen.kind)
    is_adaptive = chosen.kind == "adaptive"
    assert (document.penalty.relaxation is not None) == is_adaptive


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "num_fitted", "assumption"),
    [
        ({"kind": "vnce"}, 119, "missing completely at random"),
        ({"kind": "nce", "imputation": "mean"}, 120, "filled before the fit"),
        ({"kind": "nce", "imputation": "drop"}, 114, "missing completely at random"),
    ],
)
def test_the_rows_that_were_fitted_are_counted_and_the_assumption_stated(
    make_request: MakeRequest, estimator: dict[str, object], num_fitted: int, assumption: str
) -> None:
    rng = np.random.default_rng(3)
    X = rng.exponential(size=(120, 3))
    X[0] = np.nan  # an empty row
    X[1:6, 1] = np.nan  # five rows with a gap
    table = pa.table([pa.array(column, from_pandas=True) for column in X.T], ["a", "b", "c"])
    request = make_request(table=table, estimator={**estimator, "penalty": 1.0})
    document = estimate(request, ignore).document
    counts = document.counts
    assert (counts.n_rows, counts.n_empty_rows, counts.n_missing) == (120, 1, 8)
    assert counts.n_fitted_rows == num_fitted
    assert assumption in document.assumption


@pytest.mark.slow
def test_nce_fills_and_says_what_it_was_asked(make_request: MakeRequest) -> None:
    estimator = {"kind": "nce", "imputation": "mean", "penalty": 1.0}
    outcome = estimate(make_request(estimator=estimator), ignore)
    assert outcome.document.convergence.converged
    assert np.isfinite(load(outcome, "imputations.npy")).all()


@pytest.mark.slow
def test_a_fit_without_iterations_left_succeeds_and_says_so(make_request: MakeRequest) -> None:
    estimator = {"kind": "vnce", "penalty": 1.0, "max_iter": 1}
    convergence = estimate(make_request(estimator=estimator), ignore).document.convergence
    assert convergence.status is FitStatus.MAX_ITERATIONS
    assert not convergence.converged
    assert "max_iter" in convergence.message


@pytest.mark.slow
def test_how_far_imputed_cells_moved_is_told_for_every_variable(
    make_request: MakeRequest, outcome: Outcome
) -> None:
    request = make_request(estimator={"kind": "score-matching"})
    convergence = estimate(request, ignore).document.convergence
    assert convergence.column_change is not None
    assert len(convergence.column_change) == len(request.spec.variables)
    assert max(change for change in convergence.column_change if change is not None) > 0
    assert outcome.document.convergence.column_change is None


@pytest.mark.slow
def test_progress_goes_through_every_stage_and_never_falls(
    unscored: tuple[Outcome, list[FitStep]],
) -> None:
    _, steps = unscored
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    stages = list(dict.fromkeys(step.stage for step in steps))
    assert stages == ["prepare", "fit", "uncertainty", "export"]


@pytest.mark.parametrize("stage", ["prepare", "fit", "export"])
def test_a_fit_that_is_told_to_stop_stops(make_request: MakeRequest, stage: str) -> None:
    steps: list[FitStep] = []

    def stop(step: FitStep) -> bool:
        steps.append(step)
        return step.stage == stage

    with pytest.raises(FitCancelledError):
        estimate(make_request(), stop)
    assert [step.stage for step in steps].count(stage) == 1


@pytest.mark.slow
def test_a_checkpoint_of_another_fit_is_not_used(again: Outcome, outcome: Outcome) -> None:
    assert not again.document.timing.resumed
    assert again.document.precision == outcome.document.precision


@pytest.mark.slow
def test_what_the_upload_and_the_engine_both_noticed_is_told_once(
    make_request: MakeRequest,
) -> None:
    rng = np.random.default_rng(2)
    parts = rng.gamma(3.0, size=(60, 3))
    table = pa.table([*parts.T, parts[:, 0]], ["a", "b", "c", "again"])
    columns = ["a", "again"]
    code = WarningCode.DUPLICATE_COLUMNS
    noticed = DatasetWarning(code=code, message="as uploaded", columns=columns, rows=[])
    for odd, message in ([noticed], "as uploaded"), ([], "Equal wherever both are observed"):
        request = replace(make_request(table), table_warnings=odd)
        warnings = estimate(request, ignore).document.warnings
        (told,) = (warning for warning in warnings if warning.code == code)
        assert told.message.startswith(message)
        assert told.columns == columns
