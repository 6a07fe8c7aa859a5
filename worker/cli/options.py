"""Options that several commands share, and the requests that they make."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from service.datasets.options import ReadOptions
from service.jobs.specs.bootstrap import BootstrapSpec
from service.jobs.specs.comparison import ComparisonSpec
from service.jobs.specs.difference import DifferenceSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.experiment import ExperimentSpec
from service.jobs.specs.mixture import MixtureEstimationSpec
from service.jobs.specs.scoring import ScoringSpec
from service.jobs.specs.simulation import SimulationSpec
from service.jobs.vocabulary import ModelKind
from worker.cli.client import JsonObject
from worker.cli.spec_options import RequestOptions

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_LIMIT = 20
MAX_LIMIT = 100

Url = Annotated[str, typer.Option("--url", envvar="VNCE_URL", help="Address of the service.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs, nothing else.")]

Limit = Annotated[
    int, typer.Option("--limit", min=1, max=MAX_LIMIT, help="How many, newest first.")
]
Cursor = Annotated[
    str | None,
    typer.Option("--cursor", help="Cursor that the last page named.", show_default=False),
]

# Estimators that the truncated Gaussian does not have.
_OF_THE_GAUSSIAN_ALONE = ("gaussian-em", "gaussian-score-matching")

READING = RequestOptions({"": ReadOptions}, panels={"": "How the file is read"})
_OF_ESTIMATIONS: dict[str, Any] = {
    "panels": {"": "Data and result", "/model": "Model", "/estimator": "Estimator"},
    "defaults": {
        "/model/kind": f"truncated-gaussian; gaussian for {', '.join(_OF_THE_GAUSSIAN_ALONE)}"
    },
}
ESTIMATION = RequestOptions(
    {"": EstimationSpec, "mixture": MixtureEstimationSpec},
    places={"/dataset_id": "DATASET", "/tag": "--tag"},
    **_OF_ESTIMATIONS,
)
# Of a network whose edges are of no interest.
IMPUTATION = RequestOptions(
    {"": EstimationSpec},
    places={
        "/dataset_id": "FILE",
        "/tag": "--tag",
        "/edge_threshold": "--edge-threshold",
        "/imputations": "--imputations",
    },
    **_OF_ESTIMATIONS,
)
SIMULATION = RequestOptions(
    {"": SimulationSpec},
    panels={"": "What is drawn"},
    flags={
        "/n_variables": "--variables",
        "/n_rows": "--rows",
        "/missing_fraction": "--missing",
    },
    places={"/graph": "GRAPH", "/tag": "--tag"},
)
EXPERIMENT = RequestOptions(
    {"": ExperimentSpec},
    panels={"": "The experiment", "/experiment": "The experiment"},
    places={"/experiment/name": "NAME", "/scale": "--quick", "/tag": "--tag"},
    defaults=dict.fromkeys(
        (
            "/experiment/graphs",
            "/experiment/estimators",
            "/experiment/fractions",
            "/experiment/n_data_sets",
            "/experiment/n_truths",
            "/experiment/sample_sizes",
        ),
        "the full version's, or fewer with --quick",
    ),
)
SCORING = RequestOptions(
    {"": ScoringSpec},
    panels={},
    places={"/job_id": "JOB", "/ground_truth": "--truth", "/tag": "--tag"},
)
BOOTSTRAP = RequestOptions(
    {"": BootstrapSpec},
    panels={"": "What is drawn"},
    flags={"/n_resamples": "--resamples", "/n_subsets": "--subsets"},
    places={"/job_id": "JOB", "/tag": "--tag"},
)
COMPARISON = RequestOptions(
    {"": ComparisonSpec},
    panels={"": "Data and result"},
    flags={"/n_folds": "--folds"},
    places={"/dataset_id": "TABLE", "/specifications": "--model", "/tag": "--tag"},
)
DIFFERENCE = RequestOptions(
    {"": DifferenceSpec},
    panels={"": "What is compared"},
    flags={"/n_permutations": "--permutations"},
    places={"/job_id": "FIRST", "/other_job_id": "SECOND", "/tag": "--tag"},
)


def estimation_request(
    dataset_id: str, given: Mapping[str, Any], options: RequestOptions = ESTIMATION
) -> JsonObject:
    """Return the body of an estimation job; what was not given is left to the service."""
    document = options.document(given)
    estimator = {"kind": "vnce"} | document.get("estimator", {})
    is_gaussian = estimator["kind"] in _OF_THE_GAUSSIAN_ALONE
    usual = ModelKind.GAUSSIAN if is_gaussian else ModelKind.TRUNCATED_GAUSSIAN
    model = {"kind": usual.value} | document.get("model", {})
    return document | {"dataset_id": dataset_id, "model": model, "estimator": estimator}
