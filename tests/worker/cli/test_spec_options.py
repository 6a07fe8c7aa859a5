"""Options are made of the models of requests, and requests of what was given."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
import typer
from pydantic import BaseModel, Field
from typer.testing import CliRunner, Result

from service.jobs.specs import AnyEstimationSpec
from worker.cli.options import ESTIMATION, EXPERIMENT, READING, SIMULATION, estimation_request
from worker.cli.spec_fields import NULL
from worker.cli.spec_options import RequestOptions, with_options

Vnce = Callable[..., Result]


class Shade(StrEnum):
    LIGHT = "light"
    DARK = "dark"


class Wheels(BaseModel):
    kind: Literal["wheels"]
    number: Annotated[int, Field(ge=1, description="How many, from 1. Four are usual.")] = 4
    grip: float | Literal["auto"] | None = Field(
        default="auto", description="Grip; left out: chosen; null: none at all."
    )

    load: float = Field(default=0.5, description="What each of them bears.")


class Runners(BaseModel):
    kind: Literal["runners"]
    number: Annotated[int, Field(description="How many runners.")] = 2
    waxed: bool = Field(default=True, description="With wax.")
    load: float = Field(default=0.5, description="What each of them bears.")


class Feet(BaseModel):
    kind: Literal["feet"]
    number: Annotated[int, Field(description="How many feet.")] = 2
    load: float = Field(default=0.25, description="What each of them bears.")


class Order(BaseModel):
    kind: Literal["order"]
    shade: Shade | None = Field(default=None, description="Shade of the paint; null: unpainted.")
    names: list[str] = Field(default=[], description="Names to write on it.")
    sizes: list[float] | None = Field(default=None, description="Sizes; null: the usual ones.")
    spare: bool = Field(default=False, description="With a spare part.")
    parts: Annotated[
        Wheels | Runners | Feet,
        Field(discriminator="kind", description="What it moves on; left out: `wheels`."),
    ] = Wheels(kind="wheels")


ORDER = RequestOptions(
    {"": Order}, panels={"": "The order", "/parts": "Its parts"}, flags={"/shade": "--paint"}
)


def ordered(*arguments: str) -> Any:
    """Return the request that a command line makes, or its error."""
    made = []
    app = typer.Typer()

    @app.command()
    @with_options(ORDER)
    def order(**given: Any) -> None:
        made.append(ORDER.document(given))

    result = CliRunner().invoke(app, arguments)
    return made[0] if result.exit_code == 0 else " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "request_"),
    [
        ([], {}),
        (["--paint", "dark"], {"shade": "dark"}),
        (["--name", "a,b", "--name", "none"], {"names": ["a,b", "none"]}),
        (["--sizes", "1, 2.5,3e2"], {"sizes": [1.0, 2.5, 300.0]}),
        (["--spare"], {"spare": True}),
        (
            ["--parts", "runners", "--waxed", "false"],
            {"parts": {"kind": "runners", "waxed": False}},
        ),
        (["--waxed", "true"], {"parts": {"waxed": True}}),
        (["--number", "3"], {"parts": {"number": 3}}),
        (["--grip", "none"], {"parts": {"grip": None}}),
        (["--grip", "auto"], {"parts": {"grip": "auto"}}),
        (["--grip", "2"], {"parts": {"grip": 2.0}}),
    ],
)
def test_what_was_given_is_the_request_and_nothing_else(
    arguments: list[str], request_: dict[str, Any]
) -> None:
    assert ordered(*arguments) == {"kind": "order", **request_}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--number", "2.5"], "'--number': must be a whole number, got '2.5'"),
        (["--grip", "much"], "'--grip': must be auto, none or a number, got 'much'"),
        (["--grip", "nan"], "must be auto, none or a number"),
        (["--paint", "none"], "'--paint': must be light or dark, got 'none'"),
        (["--sizes", "1,x"], "must be a number, got 'x'"),
        (["--waxed", "no"], "must be true or false"),
        (["--colour", "red"], "No such option"),
    ],
)
def test_what_a_field_cannot_be_is_misuse_that_names_the_flag(
    arguments: list[str], told: str
) -> None:
    assert told in ordered(*arguments).replace("│ ", "").replace(" │", "")


@pytest.mark.parametrize(
    ("flag", "help_text", "default"),
    [
        ("--paint", "Shade of the paint.", "unpainted"),
        ("--parts", "What it moves on.", "wheels"),
        (
            "--number",
            "**wheels:** How many, from 1. **runners:** How many runners. **feet:** How many feet.",
            "4 for wheels; 2 for others",
        ),
        ("--load", "What each of them bears.", "0.5; 0.25 for feet"),
        ("--grip", "**wheels:** Grip; `none`: none at all.", "auto"),
        ("--waxed", "**runners:** With wax.", "true"),
        ("--sizes", "Sizes.", "the usual ones"),
    ],
)
def test_help_is_the_first_sentence_of_each_description_and_says_whose_it_is(
    flag: str, help_text: str, default: str
) -> None:
    [option] = [option for option in ORDER.options if option.flag == flag]
    assert (option.field.help, option.default) == (help_text, default)


@pytest.mark.parametrize("requests", [READING, ESTIMATION, SIMULATION, EXPERIMENT])
def test_every_option_of_a_request_says_what_holds_without_it(requests: RequestOptions) -> None:
    for option in requests.options:
        field = option.field
        assert field.help, option.flag
        assert option.default or option.is_repeated, f"say of {field.pointer}: null: …"


def test_every_field_of_every_estimator_and_model_has_its_own_flag() -> None:
    flags = [option.flag for request in (READING, ESTIMATION) for option in request.options]
    assert len(set(flags)) == len(flags)
    union = AnyEstimationSpec.__value__.__origin__
    for job in (branch.__origin__ for branch in union.__args__):
        for part in ("model", "estimator"):
            chosen = job.model_fields[part].annotation
            for model in getattr(chosen, "__args__", (chosen,)):
                missing = {f"/{part}/{name}" for name in model.model_fields} - set(ESTIMATION.flags)
                assert not missing, model


def test_an_estimation_carries_each_option_to_its_place() -> None:
    given: dict[str, Any] = dict.fromkeys(option.name for option in ESTIMATION.options)
    given |= {"variable": ["a"], "penalties": [1.0, 0.5], "penalty": NULL, "seed": 3}
    given |= {"transform": "none", "estimator": "nce", "imputation": "drop"}
    assert estimation_request("dataset_1", given) == {
        "kind": "estimation",
        "dataset_id": "dataset_1",
        "variables": ["a"],
        "seed": 3,
        "model": {"kind": "truncated-gaussian", "transform": "none"},
        "estimator": {
            "kind": "nce",
            "imputation": "drop",
            "penalty": None,
            "penalties": [1.0, 0.5],
        },
    }


def test_a_penalty_of_another_word_is_misuse(vnce: Vnce) -> None:
    result = vnce("submit", "dataset_1", "--penalty", "much")
    assert result.exit_code == 2
    assert "auto, ebic, cv, none or a number" in " ".join(result.output.split())
