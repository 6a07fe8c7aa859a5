"""Whatever an estimate warns of, its advice names options with values, all in one direction."""

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vnce_engine
from vnce_engine import TruncatedGaussianScoreMatching, TruncatedGaussianVNCE
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.advice import _ADVICE, Advice, Dependence, strong_dependence
from vnce_engine.inference.diagnostics import grid_end_warnings
from vnce_engine.inference.result import Diagnostics, FitResult, PenaltyStep
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.reports import FitStatus, FitWarning

ESTIMATORS = [
    estimator
    for name in vnce_engine.__all__
    if hasattr(estimator := getattr(vnce_engine, name), "fit")
]
DIAGNOSTICS = Diagnostics(0.0, None, 1.0, True, 0.0, 0.9, 0.5, 100, 0, 0, 3, 30.0)
STRENGTH = 0.3
DEFAULTS = {estimator: estimator().get_params() for estimator in ESTIMATORS}
ENGINE = Path(vnce_engine.__file__).parent
# Not of networks: the mixture and models of one's own are fitted without these estimators.
ELSEWHERE = {"black_box", "experiments"}


def literals() -> Iterator[str]:
    """Yield every string of the engine's networks, an f-string's with a 0 for what it fills in."""
    for file in ENGINE.rglob("*.py"):
        if ELSEWHERE & set(file.relative_to(ENGINE).parts):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.JoinedStr(values=parts):
                    yield "".join(
                        part.value if isinstance(part, ast.Constant) else "0" for part in parts
                    )
                case ast.Constant(value=str() as text):
                    yield text


def codes_of_the_engine() -> set[str]:
    """Return the first argument of every `FitWarning` that is made."""
    codes = set()
    for file in ENGINE.rglob("*.py"):
        if ELSEWHERE & set(file.relative_to(ENGINE).parts):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "FitWarning":
                [code, *_] = node.args
                assert isinstance(code, ast.Constant)
                codes.add(str(code.value))
    return codes


CODES = sorted(codes_of_the_engine())


def path_with(
    chosen: int, num_edges: int = 2, kind: PenaltyKind = PenaltyKind.ADAPTIVE
) -> tuple[PenaltyStep, ...]:
    strengths = {0: (0.3, 0.17, 0.1), 1: (0.55, 0.3, 0.17), 2: (1.0, 0.55, 0.3)}[chosen]
    return tuple(
        PenaltyStep(kind, strength, 0.0, None, num_edges, position == chosen)
        for position, strength in enumerate(strengths)
    )


def without_choice(path: tuple[PenaltyStep, ...]) -> tuple[PenaltyStep, ...]:
    return tuple(replace(step, chosen=False) for step in path)


def result(
    status: FitStatus = FitStatus.CONVERGED,
    path: tuple[PenaltyStep, ...] = (),
    message: str = "Stopped at `max_iter`.",
    penalty: float | None = STRENGTH,
) -> FitResult:
    eye = torch.eye(2, dtype=torch.float64)
    return FitResult(
        model=QuadraticModel(eye, eye[0], eye[0, 0]),
        status=status,
        message=message,
        objective_path=(),
        num_iterations=7,
        penalty=penalty,
        penalty_path=path,
        linear_choice="zero",
        linear_evidence=None,
        diagnostics=DIAGNOSTICS,
        warnings=(),
    )


# Options beside the defaults that change what can be advised.
VARIANTS: list[dict[str, Any]] = [
    {},
    {"noise_scale": 3.0},
    {"penalties": [1.0, 0.3]},
    {"penalty_kind": "l1", "selection": "stability"},
    {"preset": "paper"},
    {"method": "stochastic"},
]


def situations(*codes: str) -> Iterator[tuple[Any, Advice]]:
    """Yield each estimator's advice where these warnings occur, in all else varied."""
    for estimator, changes, chosen, dependence, status in itertools.product(
        ESTIMATORS, VARIANTS, (0, 1, 2), (None, Dependence(("a", "b"), 0.95)), FitStatus
    ):
        defaults = DEFAULTS[estimator]
        is_at_end = chosen != 1
        if not changes.keys() <= defaults.keys() or is_at_end != ("penalty-at-grid-end" in codes):
            continue
        yield (
            estimator,
            Advice(
                result=result(status, path_with(chosen)),
                estimator=estimator.__name__,
                options=defaults | changes,
                dependence=dependence,
                may_be_transformed=True,
                codes=frozenset(codes),
            ),
        )


NON_FINITE = FitStatus.NON_FINITE


def may_warn(estimator: Any, options: Mapping[str, object], code: str) -> bool:
    """Return whether such an estimate can carry a warning of this kind."""
    match code:
        case "half-samples-failed" | "stability-undetermined":
            return options.get("selection") == "stability"
        case "rows-taken-for-independent":
            return "ebic_gamma" in options
        case "missing-cells-not-modelled":
            return "imputation" in options
        case "linear-term-found" | "linear-term-untested":
            return options.get("linear") == "auto"
        case "far-from-zero-column" | "linear-term-needed":
            return "linear" in options
        case "step-size-too-large":
            is_stochastic: bool = "step_size" in options and options.get("method") != "natural"
            return is_stochastic
        case "not-positive-definite":
            # Those of a Gaussian are definite as they are.
            return not estimator.__name__.startswith("Gaussian")
        case "noise-separated" | "noise-told-apart" | "uneven-latent-draws" | "large-interaction":
            return "noise_scale" in options
        case _:
            return True


def texts(advice: Advice, codes: Sequence[str]) -> list[str]:
    """Return what is said to warnings of these codes and of a fit that was stopped."""
    warnings = [
        FitWarning(code, "of the penalty" if code == "choice-not-settled" else "So it is.")
        for code in codes
    ]
    return [advice.message(), *(advice.warning(warning).message for warning in warnings)]


def settings(text: str) -> list[tuple[str, Any]]:
    """Return the options that a text sets, with their values."""
    found = re.findall(r"`(\w+)=([^`]+)`", text)
    return [(name, ast.literal_eval(value)) for name, value in found]


def strengths(text: str) -> list[float]:
    """Return the strengths of a penalty that a text advises."""
    fixed = [value for name, value in settings(text) if name in ("penalty", "penalties")]
    beyond = re.findall(r"`penalties` go on to (\S+)\.$", text)
    listed = [value if isinstance(value, list) else [value] for value in fixed]
    numbers = [float(value) for values in listed for value in values if value not in ("ebic", "cv")]
    return numbers + [float(value) for value in beyond]


# What is said without an option: of assumptions, and of what is wrong with the data.
WITHOUT_OPTIONS = {
    "missing-completely-at-random",
    "missing-at-random",
    "nearly-constant-column",
    "duplicate-columns",
    "collinear-columns",
    "linearly-dependent",
    "pair-never-observed",
    "pairs-without-inclusion",
    "few-clusters",
}
# Tested by a table of its own: it is the table that says which transform helps.
HEAVY = "heavy-tailed-column"


def test_no_text_asks_for_more_or_less_of_an_option_without_a_value() -> None:
    vague = re.compile(
        r"\b(larger|smaller|stronger|weaker|more|fewer) `|nearer|Try (a|an|more|fewer) ", re.I
    )
    said = [text for text in literals() if "\n" not in text]
    assert len(said) > 1000
    assert [text for text in said if vague.search(text) and "Try" in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("code", sorted(set(CODES) - WITHOUT_OPTIONS - {HEAVY}))
def test_every_warning_names_an_option_and_a_value_that_its_estimator_takes(code: str) -> None:
    for estimator, advice in situations(code):
        if not may_warn(estimator, advice.options, code) or advice.dependence is not None:
            continue
        text = advice.warning(FitWarning(code, "of the penalty")).message
        is_undecided = code == "penalty-at-grid-end" and advice.result.status is NON_FINITE
        assert is_undecided or settings(text) or "go on to" in text or "VNCE`" in text


@pytest.mark.slow
@pytest.mark.parametrize("codes", [*itertools.combinations(CODES, 2)], ids="+".join)
def test_warnings_of_one_result_do_not_contradict_each_other(codes: tuple[str, str]) -> None:
    for _, advice in situations(*codes):
        # What was chosen is named too, and is no direction.
        named = {strength for text in texts(advice, codes) for strength in strengths(text)}
        named -= {STRENGTH}
        assert not (min(named, default=1) < STRENGTH < max(named, default=0))
        if advice.dependence is not None:
            assert max(named, default=0) < STRENGTH


@pytest.mark.slow
@pytest.mark.parametrize("code", CODES)
def test_an_estimator_takes_what_it_is_advised(code: str) -> None:
    for estimator, advice in situations(code):
        if not may_warn(estimator, advice.options, code):
            continue
        for text in texts(advice, [code]):
            for name, value in settings(text):
                if name != "preset":
                    estimator(**{**advice.options, name: value})._check_parameters()
            if "preset" in text:
                TruncatedGaussianVNCE(**dict(settings(text)))._check_parameters()


def test_strong_dependence_is_told_from_an_estimate_that_runs_away() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    X = np.column_stack([a, a + 0.2 * rng.normal(size=500), rng.normal(size=500)])
    observations = Observations.from_array(X)
    K = np.linalg.inv(np.cov(X.T))
    found = strong_dependence(K, observations, ["a", "b", "c"], has_linear=True)
    assert found is not None
    assert found.columns == ("a", "b")
    assert found.correlation == pytest.approx(np.corrcoef(X.T)[0, 1], rel=1e-12)
    K[0, 2] = K[2, 0] = 1e3
    assert strong_dependence(K, observations, ["a", "b", "c"], has_linear=True) is None


def test_a_strongly_correlated_pair_is_not_advised_a_penalty_that_flattens_it() -> None:
    rng = np.random.default_rng(1)
    a = 8 + rng.normal(size=300)
    X = np.column_stack([a, a + 0.2 * rng.normal(size=300), 8 + rng.normal(size=300)])
    model = TruncatedGaussianVNCE(linear="free", penalty=None).fit(X)
    [warning] = [w for w in model.warnings_ if w.code == "large-interaction"]
    assert "column 0 and column 1" in warning.message
    assert not [w for w in model.warnings_ if "penalty=" in w.message]


def test_the_penalty_that_is_advised_makes_an_indefinite_precision_definite() -> None:
    rng = np.random.default_rng(4)
    X = rng.exponential(size=(30, 4))
    X[:, 1] = X[:, 0] * rng.exponential(size=30)
    model = TruncatedGaussianScoreMatching().fit(X)
    [warning] = [w for w in model.warnings_ if w.code == "not-positive-definite"]
    advised = dict(settings(warning.message))
    held = TruncatedGaussianScoreMatching(**advised).fit(X)
    assert held.diagnostics_.is_positive_definite


def test_the_transform_that_is_advised_is_one_that_helps() -> None:
    rng = np.random.default_rng(3)
    X = np.abs(rng.normal(size=(200, 3)))
    X[:, 1] = rng.exponential(size=200) ** 2
    options: dict[str, Any] = {"linear": "zero", "penalty": 1.0}
    [warning] = [w for w in TruncatedGaussianVNCE(**options).fit(X).warnings_ if w.code == HEAVY]
    model = TruncatedGaussianVNCE(**options, **dict(settings(warning.message))).fit(X)
    assert HEAVY not in [w.code for w in model.warnings_]


def test_where_no_transform_helps_none_is_advised() -> None:
    X = np.abs(np.random.default_rng(3).normal(size=(200, 3)))
    X[:, 1] *= np.arange(200) % 50 == 0
    model = TruncatedGaussianVNCE(linear="zero", penalty=1.0).fit(X)
    [warning] = [w for w in model.warnings_ if w.code == HEAVY]
    assert settings(warning.message) == []


def test_values_below_zero_are_advised_no_transform() -> None:
    for _, advice in situations("noise-told-apart"):
        text = replace(advice, may_be_transformed=False).warning(
            FitWarning("noise-told-apart", "So it is.")
        )
        assert "transform" not in text.message


def test_a_strength_of_a_kind_that_held_out_rows_chose_is_advised_with_the_kind() -> None:
    chosen = path_with(2, kind=PenaltyKind.CENTRED_RIDGE)
    fitted = replace(
        result(path=(*without_choice(path_with(0)), *chosen)),
        penalty_kind=PenaltyKind.CENTRED_RIDGE,
    )
    advice = Advice(
        result=fitted,
        estimator="TruncatedGaussianVNCE",
        options=TruncatedGaussianVNCE().get_params(),
        dependence=None,
        may_be_transformed=True,
        codes=frozenset(["large-interaction"]),
    )
    text = advice.warning(FitWarning("large-interaction", "So it is.")).message
    assert settings(text) == [("penalty", 0.9), ("penalty_kind", "centred-ridge")]


def test_an_end_of_the_path_is_one_of_the_chosen_kind_s() -> None:
    other = without_choice(path_with(0, kind=PenaltyKind.CENTRED_RIDGE))
    assert grid_end_warnings((*path_with(1), *other)) == []
    for end, name in ((0, "strongest"), (2, "weakest")):
        [warning] = grid_end_warnings((*path_with(end), *other))
        assert f"the {name} of 3 on its path" in warning.message


def test_there_is_advice_only_to_warnings_that_are_given() -> None:
    assert set(_ADVICE) <= set(CODES)
