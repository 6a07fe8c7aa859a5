"""Options that several commands share, and the request documents they make."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from service.datasets.vocabulary import Decimal, Encoding, RequestedFormat
from service.jobs.specs.base import DEFAULT_SEED
from service.jobs.vocabulary import (
    CensoredRule,
    Imputation,
    LinearChoice,
    ModelKind,
    NoiseDraws,
    PenaltyKind,
    Preset,
    Transform,
)
from worker.cli.client import JsonObject

DEFAULT_URL = "http://127.0.0.1:8000"
READING = "How the file is read"
MODEL = "Model and estimator"


class EstimatorKind(StrEnum):
    """Which estimator fits the model."""

    VNCE = "vnce"
    NCE = "nce"
    MLE = "mle"
    CONTRASTIVE_DIVERGENCE = "contrastive-divergence"
    PSEUDO_LIKELIHOOD = "pseudo-likelihood"
    SCORE_MATCHING = "score-matching"
    GAUSSIAN_EM = "gaussian-em"
    GAUSSIAN_SCORE_MATCHING = "gaussian-score-matching"


Url = Annotated[
    str,
    typer.Option("--url", envvar="VNCE_URL", help="Address of the service."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs, nothing else.")]

Format = Annotated[
    RequestedFormat,
    typer.Option(help="Format; `auto` lets the content decide.", rich_help_panel=READING),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="CSV: between cells; , ; | : or a word such as tab.",
        show_default="found out",
        rich_help_panel=READING,
    ),
]
DecimalMark = Annotated[
    Decimal | None,
    typer.Option(
        "--decimal", help="CSV: decimal mark.", show_default="found out", rich_help_panel=READING
    ),
]
EncodingName = Annotated[
    Encoding | None,
    typer.Option(
        "--encoding",
        help="CSV and JSON: character encoding.",
        metavar="NAME",
        show_default="utf-8, or the byte order mark's",
        rich_help_panel=READING,
    ),
]
SkipRows = Annotated[
    int, typer.Option(min=0, help="CSV: lines above the header.", rich_help_panel=READING)
]
UnitsRow = Annotated[
    bool,
    typer.Option("--units-row", help="CSV: units stand below the header.", rich_help_panel=READING),
]
NaValues = Annotated[
    list[str] | None,
    typer.Option(
        "--na-value",
        help="A text or number that means missing, besides blank, NA and their like; repeatable.",
        show_default=False,
        rich_help_panel=READING,
    ),
]

Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--variable", help="Use this column; repeatable.", show_default="all", rich_help_panel=MODEL
    ),
]
TransformName = Annotated[
    Transform | None,
    typer.Option(
        "--transform",
        help="Applied to every observed cell.",
        show_default="none",
        rich_help_panel=MODEL,
    ),
]
Linear = Annotated[
    LinearChoice | None,
    typer.Option(
        help="Linear term: estimated, left out, or whichever predicts better.",
        show_default="auto",
        rich_help_panel=MODEL,
    ),
]
ModelName = Annotated[
    ModelKind | None,
    typer.Option(
        "--model",
        help="What is assumed: a network of non-negative columns, or of any, or two normals in one "
        "column.",
        show_default="truncated-gaussian; gaussian for gaussian-em and gaussian-score-matching",
        rich_help_panel=MODEL,
    ),
]
ModelOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--model-option",
        metavar="NAME=VALUE",
        help="Any other field of the model as the API takes it, such as sigma_1=0.5 or "
        "form=normalised; repeatable.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
EstimatorName = Annotated[
    EstimatorKind,
    typer.Option(
        "--estimator",
        help="vnce integrates missing cells out; the others are comparators; gaussian-em "
        "and gaussian-score-matching fit a Gaussian, whose columns may be negative.",
        rich_help_panel=MODEL,
    ),
]
EstimatorOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Any other field of the estimator as the API takes it, such as selection=ebic, "
        "penalties=[1,0.5] or method=stochastic; repeatable.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
PresetName = Annotated[
    Preset | None,
    typer.Option(
        "--preset",
        help="vnce: this project's recipe or the paper's.",
        show_default="default",
        rich_help_panel=MODEL,
    ),
]
ImputationName = Annotated[
    Imputation | None,
    typer.Option(
        "--imputation",
        help="nce: what missing cells become.",
        show_default="mean",
        rich_help_panel=MODEL,
    ),
]
Penalty = Annotated[
    str | None,
    typer.Option(
        help="Strength: auto, none or a positive number.",
        show_default="auto",
        rich_help_panel=MODEL,
    ),
]
PenaltyShape = Annotated[
    PenaltyKind | None,
    typer.Option(
        "--penalty-kind",
        help="Shape of the penalty.",
        show_default="auto for vnce and nce, adaptive for others",
        rich_help_panel=MODEL,
    ),
]
NoiseRatio = Annotated[
    int | None,
    typer.Option(help="Noise rows per row of data.", show_default="10", rich_help_panel=MODEL),
]
NoiseDrawsName = Annotated[
    NoiseDraws | None,
    typer.Option(
        "--noise-draws",
        help="How noise is drawn.",
        show_default="sobol",
        rich_help_panel=MODEL,
    ),
]
MaxIter = Annotated[
    int | None,
    typer.Option(
        help="Most iterations of one fit.",
        show_default="the recipe's own",
        rich_help_panel=MODEL,
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tol",
        help="Scaled change at which the fit has converged.",
        show_default="0.003",
        rich_help_panel=MODEL,
    ),
]
MinObserved = Annotated[
    int | None,
    typer.Option(
        help="Observed cells that every variable needs.",
        show_default="10 or 2 % of the rows, at most half",
        rich_help_panel=MODEL,
    ),
]
EdgeThreshold = Annotated[
    float | None,
    typer.Option(
        help="Least |partial correlation| of a displayed edge.",
        show_default="0.1",
        rich_help_panel=MODEL,
    ),
]
Censored = Annotated[
    CensoredRule | None,
    typer.Option(
        help="Cells such as <0.5: refuse them, or treat them as missing.",
        show_default="refuse",
        rich_help_panel=MODEL,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Seed of every random draw.",
        show_default=str(DEFAULT_SEED),
        rich_help_panel=MODEL,
    ),
]


@dataclass(frozen=True)
class ModelChoices:
    """What the user said about model and estimator; None where the default is to hold."""

    variables: list[str] | None
    model: ModelKind | None
    model_options: list[str] | None
    transform: Transform | None
    linear: LinearChoice | None
    estimator: EstimatorKind
    options: list[str] | None
    preset: Preset | None
    imputation: Imputation | None
    penalty: str | None
    penalty_kind: PenaltyKind | None
    noise_ratio: int | None
    noise_draws: NoiseDraws | None
    max_iter: int | None
    tol: float | None
    min_observed: int | None
    edge_threshold: float | None
    censored: CensoredRule | None
    seed: int | None


def job_document(dataset_id: str, choices: ModelChoices, tag: str | None = None) -> JsonObject:
    """Return the body of an estimation job; what was not chosen is left to the service."""
    estimator = {
        "kind": choices.estimator,
        "preset": choices.preset,
        "imputation": choices.imputation,
        "penalty_kind": choices.penalty_kind,
        "noise_ratio": choices.noise_ratio,
        "noise_draws": choices.noise_draws,
        "max_iter": choices.max_iter,
        "tol": choices.tol,
    }
    model = {
        "kind": choices.model or _usual_model(choices.estimator),
        "transform": choices.transform,
        "linear": choices.linear,
    }
    document = {
        "kind": "estimation",
        "dataset_id": dataset_id,
        "variables": choices.variables or None,
        "min_observed": choices.min_observed,
        "edge_threshold": choices.edge_threshold,
        "censored": choices.censored,
        "seed": choices.seed,
        "tag": tag,
    }
    return {
        **_chosen(document),
        "model": _chosen(model) | fields(choices.model_options, "--model-option"),
        "estimator": _chosen(estimator)
        | _penalty(choices.penalty)
        | fields(choices.options, "--option"),
    }


def _usual_model(estimator: EstimatorKind) -> ModelKind:
    is_gaussian = estimator in (
        EstimatorKind.GAUSSIAN_EM,
        EstimatorKind.GAUSSIAN_SCORE_MATCHING,
    )
    return ModelKind.GAUSSIAN if is_gaussian else ModelKind.TRUNCATED_GAUSSIAN


def _chosen(values: dict[str, Any]) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def fields(texts: list[str] | None, flag: str) -> JsonObject:
    """Return fields by NAME=VALUE, each value JSON where it is that, else the text itself."""
    document: JsonObject = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"must be NAME=VALUE, got {text!r}", param_hint=flag)
        try:
            document[name] = json.loads(value)
        except json.JSONDecodeError:
            document[name] = value
    return document


def _penalty(text: str | None) -> JsonObject:
    """Return the penalty's part of the document; `none` is a choice, and is null there."""
    match text:
        case None:
            return {}
        case "auto":
            return {"penalty": "auto"}
        case "none":
            return {"penalty": None}
    try:
        return {"penalty": float(text)}
    except ValueError:
        raise typer.BadParameter(
            f"must be auto, none or a number, got {text!r}", param_hint="--penalty"
        ) from None
