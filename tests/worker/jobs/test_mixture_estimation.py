"""A column becomes a mixture's document and files."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pyarrow import parquet

from service.datasets.readers.cells import CELL_SCHEMA
from service.datasets.schemas import DatasetWarning
from service.datasets.vocabulary import WarningCode
from service.http.problems import ProblemCode
from service.jobs.specs.mixture import MixtureEstimationSpec
from service.results.mixture_result import MixtureResult
from service.results.outcome import Outcome
from service.results.schemas import DatasetIdentity
from tests.report_pages import page_of, parsed, text_of, verdicts_of
from tests.result_files import MIXTURE_FILES
from vnce_engine.experiments.mixture.options import Estimator, Form, MixtureOptions
from vnce_engine.inference.interval import HALF_WIDTH
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.figures.drawing import render
from worker.artefacts.figures.mixture import draw_mixture
from worker.jobs.failures import FitCancelledError, JobFailedError
from worker.jobs.mixture import MixtureRequest, build_options, estimate_mixture

THETA = 4.0
SMALL = {"n_starts": 3, "noise_ratio": 2}
ESTIMATORS: list[dict[str, Any]] = [
    {"kind": "vnce", **SMALL},
    {"kind": "vnce", "climb": "exact-em", **SMALL},
    {"kind": "nce", **SMALL},
    {"kind": "mle", "n_starts": 3},
]


def ignore(_: FitStep) -> None:
    pass


def sample(n: int = 600, seed: int = 2) -> NDArray[np.float64]:
    """Return values of the unnormalised mixture, a tenth of them missing."""
    rng = np.random.default_rng(seed)
    sigma = np.where(rng.random(n) < 1 / (1 + THETA), 1.0, THETA)
    x = sigma * rng.normal(size=n)
    x[rng.random(n) < 0.1] = np.nan
    return x


def spec_of(**choices: Any) -> MixtureEstimationSpec:
    job = MixtureEstimationSpec.model_validate(
        {"kind": "estimation", "dataset_id": "d", "model": {"kind": "mixture"}, **choices}
    )
    return job.model_copy(update={"variables": job.variables or ["x"]})


def request(
    x: NDArray[np.float64],
    cells: pa.Table | None = None,
    table_warnings: list[DatasetWarning] | None = None,
    **choices: Any,
) -> MixtureRequest:
    other = pa.array(np.arange(len(x), dtype=np.float64))
    return MixtureRequest(
        spec=spec_of(**{"estimator": ESTIMATORS[2], **choices}),
        table=pa.table({"before": other, "x": pa.array(x, from_pandas=True)}),
        censored=CELL_SCHEMA.empty_table() if cells is None else cells,
        table_warnings=table_warnings or [],
        dataset=DatasetIdentity(id="d", name="column.csv", sha256="0" * 64),
    )


def document(outcome: Outcome) -> MixtureResult:
    assert isinstance(outcome.document, MixtureResult)
    return outcome.document


def files(outcome: Outcome) -> dict[str, bytes]:
    return {artefact.name: artefact.content for artefact in outcome.artefacts}


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return estimate_mixture(request(sample()), ignore)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_theta_and_c_are_recovered_within_five_standard_errors(estimator: dict[str, Any]) -> None:
    found = document(estimate_mixture(request(sample(), estimator=estimator), ignore))
    assert found.convergence.converged
    true_c = 0.5 * np.log(2 * np.pi) + np.log(1 + THETA)
    assert found.log_partition is not None
    for estimate, truth in ((found.theta, THETA), (found.log_partition, true_c)):
        assert estimate.standard_error is not None
        assert 0 < estimate.standard_error < 0.1 * truth  # so that this says something
        assert abs(estimate.value - truth) < 5 * estimate.standard_error
    assert (found.noise is None) == (estimator["kind"] == "mle")
    assert found.weights.known == pytest.approx(1 / (1 + found.theta.value))
    assert found.weights.known + found.weights.free == pytest.approx(1)


@pytest.mark.slow
def test_a_fit_that_went_on_says_so(outcome: Outcome) -> None:
    exact_em = request(sample(), estimator={"kind": "vnce", "climb": "exact-em", **SMALL})
    stored: list[bytes] = []

    def stop_when_something_is_saved(step: FitStep) -> bool:
        if step.checkpoint is not None:
            stored.append(step.checkpoint.dump())
        return len(stored) > 1 and len(stored[-1]) > len(stored[0])

    with pytest.raises(FitCancelledError):
        estimate_mixture(exact_em, stop_when_something_is_saved)
    again = replace(exact_em, checkpoint=Checkpoint.load(stored[-1]))
    assert document(estimate_mixture(again, ignore)).timing.resumed
    assert not document(outcome).timing.resumed


@pytest.mark.slow
def test_the_checkpoint_of_another_fit_is_not_used(outcome: Outcome) -> None:
    others = Checkpoint()
    others.begin_fit("another table")
    again = replace(request(sample()), checkpoint=Checkpoint.load(others.dump()))
    found = document(estimate_mixture(again, ignore))
    assert (found.timing.resumed, found.theta) == (False, document(outcome).theta)


@pytest.mark.slow
def test_a_normalised_mixture_has_no_c_and_equal_weights() -> None:
    model = {"kind": "mixture", "form": "normalised"}
    found = document(estimate_mixture(request(sample(), model=model), ignore))
    assert found.log_partition is None
    assert found.weights.known == 0.5
    assert {start.log_partition for start in found.starts} == {None}


def test_rows_without_a_value_are_left_out_counted_and_told(outcome: Outcome) -> None:
    x = sample()
    num_missing = int(np.isnan(x).sum())
    found = document(outcome)
    assert num_missing > 0
    assert found.counts.model_dump() == {
        "n_rows": len(x),
        "n_fitted_values": len(x) - num_missing,
        "n_missing": num_missing,
        "n_censored": 0,
    }
    [told] = [warning for warning in found.warnings if warning.code == "rows-left-out"]
    assert told.message.startswith(f"{num_missing} row")
    assert "missing completely at random" in found.assumption


@pytest.mark.slow
def test_leaving_them_out_is_what_the_shorter_column_gives(outcome: Outcome) -> None:
    x = sample()
    shorter = document(estimate_mixture(request(x[~np.isnan(x)]), ignore))
    assert shorter.theta == document(outcome).theta
    assert "rows-left-out" not in [warning.code for warning in shorter.warnings]
    assert "No cell is missing" in shorter.assumption


def test_responsibilities_name_the_row_of_every_value(outcome: Outcome) -> None:
    x, theta = sample(), document(outcome).theta.value
    lines = list(csv.DictReader(io.StringIO(files(outcome)["responsibilities.csv"].decode())))
    rows = np.array([int(line["row"]) for line in lines])
    np.testing.assert_array_equal(rows, np.flatnonzero(~np.isnan(x)) + 1)
    values = np.array([float(line["value"]) for line in lines])
    np.testing.assert_array_equal(values, x[rows - 1])
    known = 1 / (1 + np.exp(-0.5 * values**2 * (theta**-2 - 1)))
    np.testing.assert_allclose([float(line["known"]) for line in lines], known, atol=1e-12)
    table = parquet.read_table(io.BytesIO(files(outcome)["responsibilities.parquet"]))
    assert table.column("row").to_pylist() == rows.tolist()
    np.testing.assert_array_equal(table.column("known"), [float(line["known"]) for line in lines])


def test_every_file_is_made_and_no_other(outcome: Outcome) -> None:
    assert files(outcome).keys() == MIXTURE_FILES
    objective = files(outcome)["objective.csv"].decode().splitlines()
    assert len(objective) == 1 + document(outcome).convergence.n_iter
    assert float(objective[-1].split(",")[1]) == document(outcome).convergence.objective


@pytest.mark.slow
def test_the_same_request_gives_the_same_bytes(outcome: Outcome) -> None:
    again = estimate_mixture(request(sample()), ignore)
    assert files(again) == files(outcome)
    first, second = (document(each).model_dump(exclude={"timing"}) for each in (outcome, again))
    assert first == second


def test_the_best_starts_are_counted(outcome: Outcome) -> None:
    found = document(outcome)
    assert len(found.starts) == 3
    assert found.n_best == sum(start.is_best for start in found.starts) >= 1


@pytest.mark.slow
def test_starts_that_went_nowhere_are_null_in_json() -> None:
    # Of the known component alone: from some starts theta shrinks without end.
    x = np.random.default_rng(4).normal(size=300)
    for seed in range(2):
        estimator = {"kind": "mle", "n_starts": 8}
        found = document(estimate_mixture(request(x, estimator=estimator, seed=seed), ignore))
        text = found.model_dump_json()
        json.loads(text, parse_constant=lambda constant: pytest.fail(constant))


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({"estimator": {"kind": "vnce"}}, {"estimator": Estimator.VNCE, "noise_ratio": 10}),
        (
            {"estimator": {"kind": "vnce", "climb": "exact-em", "max_iter": 7, "n_starts": 2}},
            {"estimator": Estimator.EXACT_EM, "max_iterations": 7, "num_starts": 2},
        ),
        (
            {"estimator": {"kind": "nce", "noise_ratio": 4, "noise_scale": 1.5}},
            {"estimator": Estimator.NCE, "noise_ratio": 4, "noise_scale": 1.5},
        ),
        ({"estimator": {"kind": "mle", "n_starts": 9}}, {"estimator": Estimator.MLE}),
        (
            {"model": {"kind": "mixture", "form": "normalised", "sigma_1": 0.5}},
            {"form": Form.NORMALISED, "sigma_1": 0.5},
        ),
    ],
    ids=str,
)
def test_every_choice_reaches_the_engine(choices: dict[str, Any], expected: dict[str, Any]) -> None:
    options = vars(build_options(spec_of(**choices)))
    assert options == {**vars(MixtureOptions()), **options, **expected}
    assert options["num_starts"] == choices.get("estimator", {}).get("n_starts", 5)


@pytest.mark.slow
def test_limits_are_refused_or_counted_as_the_job_says() -> None:
    x = np.append(sample(), [np.nan, np.nan])
    rows = [
        dict.fromkeys(CELL_SCHEMA.names) | {"row": row, "column": "x"}
        for row in (len(x) - 1, len(x))
    ]
    cells = pa.Table.from_pylist(rows, schema=CELL_SCHEMA)
    with pytest.raises(JobFailedError) as refused:
        estimate_mixture(request(x, cells), ignore)
    assert refused.value.problem.code == ProblemCode.INCOMPATIBLE_MODEL
    found = document(estimate_mixture(request(x, cells, censored="missing"), ignore))
    assert found.counts.n_censored == 2
    assert "censored-as-missing" in [warning.code for warning in found.warnings]


@pytest.mark.slow
def test_what_is_odd_for_a_network_alone_is_not_repeated() -> None:
    warnings = [
        DatasetWarning(code=code, message=code.value, columns=columns, rows=[])
        for code, columns in (
            (WarningCode.SINGLE_COLUMN, []),
            (WarningCode.OUTLIERS, ["x"]),
            (WarningCode.OUTLIERS, ["before"]),
        )
    ]
    x = sample()
    found = document(estimate_mixture(request(x[~np.isnan(x)], None, warnings), ignore))
    told = [(warning.code, warning.columns) for warning in found.warnings]
    assert told.count(("outliers", ["x"])) == 1
    assert {code for code, _ in told} <= {"outliers", "starts-disagree"}


def test_what_the_engine_refuses_fails_the_job() -> None:
    x = np.append(sample(), 0.0)
    choices: dict[str, Any] = {
        "model": {"kind": "mixture", "form": "normalised"},
        "estimator": {"kind": "mle"},
    }
    with pytest.raises(JobFailedError, match="exact zeros") as failed:
        estimate_mixture(request(x, **choices), ignore)
    assert failed.value.problem.code == ProblemCode.INCOMPATIBLE_MODEL


def test_an_objective_that_is_nowhere_finite_fails_the_job() -> None:
    estimator = {"kind": "vnce", "n_starts": 1}
    with pytest.raises(JobFailedError) as failed:
        estimate_mixture(request(1e200 * sample(), estimator=estimator), ignore)
    assert failed.value.problem.code == ProblemCode.NON_FINITE_OBJECTIVE


@pytest.mark.slow
def test_progress_goes_through_every_stage_and_never_falls() -> None:
    steps: list[FitStep] = []
    estimate_mixture(request(sample()), steps.append)
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert list(dict.fromkeys(step.stage for step in steps)) == ["prepare", "fit", "export"]


@pytest.mark.parametrize("stage", ["prepare", "fit", "export"])
def test_an_estimation_that_is_told_to_stop_stops(stage: str) -> None:
    with pytest.raises(FitCancelledError):
        estimate_mixture(request(sample()), lambda step: step.stage == stage)


@pytest.mark.slow
@pytest.mark.parametrize("theta", [3.0, 1e-9, 1e-200])
def test_the_picture_shows_the_values_whatever_theta_is(theta: float) -> None:
    x = sample()

    def draw(figure: Figure) -> None:
        draw_mixture(figure, x[~np.isnan(x)], theta, 1.0, 0.5, "x", "column.csv, NCE")

    picture = render(draw)
    assert f"θ = {theta:.4g}" in picture["svg"].decode()
    assert picture == render(draw)


@pytest.mark.parametrize(
    ("form", "estimator", "told", "works"),
    [
        ("unnormalised", ESTIMATORS[0], "the log partition c estimated with θ", ("Rhodes",)),
        ("normalised", ESTIMATORS[2], "each weighing one half", ("Gutmann and A.", "Rhodes")),
        ("normalised", ESTIMATORS[3], "estimated by maximum likelihood", ("Rhodes",)),
    ],
)
def test_its_report_has_estimates_with_intervals_starts_and_methods(
    form: str, estimator: dict[str, Any], told: str, works: tuple[str, ...]
) -> None:
    model = {"kind": "mixture", "form": form}
    outcome = estimate_mixture(request(sample(), model=model, estimator=estimator), ignore)
    found, root = document(outcome), parsed(page_of(outcome.artefacts))
    said = text_of(root)
    [verdict] = verdicts_of(root)
    assert verdict.startswith("Converged: ")
    assert f"θ = {found.theta.value:.4g}" in verdict
    assert "rows have no value and were left out" in said
    assert told in said
    references = said.partition("References")[2]
    assert [work for work in ("Gutmann and A.", "Rhodes") if work in references] == list(works)
    rows = [text_of(row) for row in root.iter("tr") if row.attrib.get("class") == "bold"]
    assert len(rows) == found.n_best
    assert found.theta.standard_error is not None
    lower = found.theta.value - HALF_WIDTH * found.theta.standard_error
    assert f" {lower:.4g} to " in said
