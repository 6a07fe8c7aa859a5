"""What helps against what an estimate warns of: options by name, with values.

Warnings state facts where these are measured; here they meet the options of the estimator, so that
all of one result point in one direction.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vnce_engine.data.observations import Observations
from vnce_engine.data.transforms import Transform
from vnce_engine.inference.result import FitResult, path_of_the_chosen
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.reports import FitStatus, FitWarning

# What a penalty without a present strength is to begin with, one of the usual grid.
_FIRST_STRENGTH = 1.0
# Two steps of the usual grid; beyond the end of a path ten times as far.
_FACTOR = 3.0
_FAR_FACTOR = 10.0
# Signs that the penalty no longer holds the estimates.
_RUNNING_AWAY = frozenset(
    (
        "large-interaction",
        "noise-separated",
        "noise-told-apart",
        "uneven-latent-draws",
        "definiteness-limit",
        "not-positive-definite",
    )
)


@dataclass(frozen=True)
class Dependence:
    """Two columns whose correlation alone calls for an interaction above 1."""

    columns: tuple[str, str]
    correlation: float

    def __str__(self) -> str:
        """Return the pair and how it is correlated."""
        return f"{' and '.join(self.columns)} (correlation {self.correlation:.3g})"


def strong_dependence(
    precision: NDArray[np.float64],
    observations: Observations,
    names: Sequence[str],
    *,
    has_linear: bool,
) -> Dependence | None:
    """Return the pair with the largest interaction if its rows are strongly correlated.

    Of two normal columns with correlation r the interaction, both scaled to unit precision by
    themselves, is r / (1 - r²): where that is above 1, an interaction above 1 is no sign of a fit
    that runs away, and a stronger penalty would only flatten it. `precision` (d, d) is K.
    """
    values, observed = observations.values.numpy(), observations.observed.numpy()
    counts = observed.sum(axis=0)
    mean = values.sum(axis=0, where=observed) / counts
    # About the mean before squaring: of a column far from zero nothing would be left after it.
    deviations = np.where(observed, values - mean if has_linear else values, 0.0)
    spread = np.sqrt(np.square(deviations).sum(axis=0) / counts)
    sizes = np.abs(precision) * np.outer(spread, spread)
    np.fill_diagonal(sizes, 0.0)
    i, j = sorted(int(k) for k in np.unravel_index(np.argmax(sizes), sizes.shape))
    both = observed[:, i] & observed[:, j]
    first, second = values[both, i], values[both, j]
    # Two rows are always on a line.
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    correlation = float(np.corrcoef(first, second)[0, 1])
    if abs(correlation) <= 1 - correlation**2:
        return None
    return Dependence((names[i], names[j]), correlation)


@dataclass(frozen=True)
class Advice:
    """What can be said to a result's warnings, given its estimator's options."""

    result: FitResult
    estimator: str
    """Name of the estimator's class."""
    options: Mapping[str, object]
    """Its parameters, by name."""
    dependence: Dependence | None
    may_be_transformed: bool
    """Whether no value is negative."""
    codes: frozenset[str]
    """Those of all of the result's warnings."""

    def message(self) -> str:
        """Return the result's message with what to try."""
        status, said = self.result.status, self.result.message
        if status is FitStatus.NON_FINITE:
            return _joined(said, _try(self._step_size() or [*self._stronger(), *self._transform()]))
        if status is not FitStatus.MAX_ITERATIONS:
            return said
        if self._is_stochastic():
            size = _number(self.options["step_size"])
            return _joined(
                said, f"Try {_set('step_size', size / 2)} and {_set('step_size', 2 * size)}."
            )
        if "`max_iter`" not in said:
            return _joined(said, _try(self._stronger()))
        cap = self.options.get("max_iter") or self.result.num_iterations
        more = _set("max_iter", _FACTOR * _number(cap))
        recipe = ['`preset="default"`'] if self.options.get("preset") == "paper" else []
        return _joined(said, _try([more, *self._stronger(), *recipe]))

    def warning(self, warning: FitWarning) -> FitWarning:
        """Return a warning with what to do about it."""
        advise = _ADVICE.get(warning.code)
        text = "" if advise is None else advise(self, warning)
        return replace(warning, message=_joined(warning.message, text))

    # --- one option each: a list with an assignment, or empty where there is none ---

    def _direction(self) -> str | None:
        """Return where the penalty is to go: "stronger", "weaker" or None for neither."""
        if "penalty" not in self.options:
            return None
        end = self._end_of_path() if "penalty-at-grid-end" in self.codes else "stronger"
        if self._runs_away():
            end = "stronger"
        # A stronger one would flatten the pair.
        return None if self.dependence is not None and end == "stronger" else end

    def _runs_away(self) -> bool:
        is_finite = self.result.status is not FitStatus.NON_FINITE
        return bool(self.codes & _RUNNING_AWAY) or not is_finite

    def _end_of_path(self) -> str | None:
        """Return in which direction the path ended too early; None if it did not."""
        path = path_of_the_chosen(self.result.penalty_path)
        if "penalty-at-grid-end" not in self.codes or not path:
            return None
        if not path[0].chosen:
            return "weaker"
        return "stronger" if path[0].num_edges else None

    def _stronger(self) -> list[str]:
        if self._direction() != "stronger":
            return []
        strength = self._strength()
        if strength is not None:
            return [self._fixed(_FACTOR * strength)]
        if self.estimator == "GaussianEM":
            return ['`penalty="ebic"`']
        return [_set("penalty", _FIRST_STRENGTH)]

    def _fixed(self, strength: float) -> str:
        """Return what gives the penalty this strength beside the options that there are."""
        is_chosen = self.options.get("selection", "held-out") != "held-out"
        if is_chosen or self.options.get("penalties") is not None:
            return f"`penalties=[{_round(strength)}]`"
        return self._penalty(strength)

    def _penalty(self, strength: float) -> str:
        """Return what sets the strength of a penalty of the kind that K was fitted with."""
        is_other = self.options.get("penalty_kind") == "auto" and self.result.penalty_kind not in (
            None,
            PenaltyKind.ADAPTIVE,
        )
        kind = f' with `penalty_kind="{self.result.penalty_kind}"`' if is_other else ""
        return f"{_set('penalty', strength)}{kind}"

    def _strength(self) -> float | None:
        """Return the strength that K was fitted with, or that was chosen."""
        chosen = [step.strength for step in self.result.penalty_path if step.chosen]
        return self.result.penalty if self.result.penalty is not None else next(iter(chosen), None)

    def _transform(self) -> list[str]:
        ladder = [str(transform) for transform in Transform]
        present = self.options["column_transform"]
        if (
            not isinstance(present, str)
            or present not in ladder[:-1]
            or not self.may_be_transformed
        ):
            return []
        return [f'`column_transform="{ladder[ladder.index(present) + 1]}"`']

    def _is_stochastic(self) -> bool:
        return "step_size" in self.options and self.options.get("method") != "natural"

    def _step_size(self) -> list[str]:
        if not self._is_stochastic():
            return []
        return [_set("step_size", _number(self.options["step_size"]) / _FACTOR)]

    # --- what to do about one warning each ---

    def _on_definite(self, _: FitWarning) -> str:
        if self.options.get("preset") == "paper":
            return '`preset="default"` keeps K positive definite.'
        if "noise_ratio" in self.options:  # only rounding can make that of VNCE and NCE indefinite
            return _try(self._stronger())
        # The adaptive penalty hardly shrinks what is strong.
        kind = ' with `penalty_kind="ridge"`' if "penalty_kind" in self.options else ""
        own = [f"{penalty}{kind}" for penalty in self._stronger()]
        return _try([*own, "`TruncatedGaussianVNCE` (estimator `vnce`), whose K always is"])

    def _on_interaction(self, _: FitWarning) -> str:
        if self.dependence is None:
            return f"The estimates may be diverging. {_try(self._stronger())}".strip()
        return (
            f"It is the interaction of {self.dependence}, which alone implies one so large: a "
            "stronger penalty would shrink it too far. If one repeats the other, leave one out."
        )

    def _on_overlap(self, _: FitWarning) -> str:
        scale = self.options.get("noise_scale", 1.0)
        nearer = [] if scale == 1 else ["`noise_scale=1`"]
        found = [*nearer, *self._transform(), *self._stronger()]
        return f"{_try(found)} {self._leave_one_out()}".strip() or _LEAVE_OUT

    def _leave_one_out(self) -> str:
        return "" if self.dependence is None else f"Leave out one of {self.dependence}."

    def _on_draws(self, _: FitWarning) -> str:
        return _joined(_try(self._stronger()), "Leave out rows that are nearly empty.")

    def _on_limit(self, _: FitWarning) -> str:
        return _try(self._stronger()) or self._leave_one_out() or _LEAVE_OUT

    def _on_steps(self, _: FitWarning) -> str:
        return _try(self._step_size())

    def _on_grid_end(self, _: FitWarning) -> str:
        end = self._end_of_path()
        strength = self._strength()
        if end is None or end != self._direction() or strength is None:
            return ""
        if "penalties" in self.options:
            beyond = strength * _FAR_FACTOR if end == "stronger" else strength / _FAR_FACTOR
            return f"A better one may lie beyond: let `penalties` go on to {_round(beyond)}."
        beyond = strength * _FACTOR if end == "stronger" else strength / _FACTOR
        return f"A better one may lie beyond: try {_set('penalty', beyond)}."

    def _on_choice(self, warning: FitWarning) -> str:
        evidence, strength = self.result.linear_evidence, self._strength()
        chosen = []
        if evidence is not None and not evidence.settled:
            chosen.append(f'`linear="{self.result.linear_choice}"`')
        if "penalty" in warning.message and strength is not None:
            chosen.append(self._fixed(strength))
        return f"Set {' and '.join(chosen)} to fix the choice. {_LEAVE_OUT}"

    def _on_half_samples(self, _: FitWarning) -> str:
        return 'Leave out nearly constant columns, or try `selection="ebic"`, which halves nothing.'

    def _on_filled(self, _: FitWarning) -> str:
        if self.estimator in ("TruncatedGaussianNCE", "GaussianNCE"):
            better = self.estimator.replace("NCE", "VNCE")
            return f"`{better}` (estimator `vnce`) integrates them out."
        return '`imputation="gibbs"` draws them from the model.'

    def _on_far(self, _: FitWarning) -> str:
        subtract = "Subtract a lower bound, or fit model `gaussian` (`GaussianVNCE`)."
        may_be_free = "linear" in self.options and self.result.linear_choice == "zero"
        if may_be_free and not self._is_stochastic():
            return _joined('Try `linear="free"`.', subtract)
        return subtract

    def _on_found_linear(self, _: FitWarning) -> str:
        return 'Set `linear="free"` for a linear term in all estimates.'

    def _on_independence(self, _: FitWarning) -> str:
        rule = '`selection="held-out"`' if "selection" in self.options else '`penalty="cv"`'
        return f"{rule} keeps the rows of a cluster together."

    def _on_missing_linear(self, _: FitWarning) -> str:
        return 'Try `linear="auto"`, or `linear="free"`.'


_LEAVE_OUT = "Leave out columns that are nearly functions of others."
_ADVICE: Mapping[str, Callable[[Advice, FitWarning], str]] = {
    "not-positive-definite": Advice._on_definite,
    "large-interaction": Advice._on_interaction,
    "noise-separated": Advice._on_overlap,
    "noise-told-apart": Advice._on_overlap,
    "uneven-latent-draws": Advice._on_draws,
    "definiteness-limit": Advice._on_limit,
    "step-size-too-large": Advice._on_steps,
    "penalty-at-grid-end": Advice._on_grid_end,
    "choice-not-settled": Advice._on_choice,
    "stability-undetermined": Advice._on_half_samples,
    "half-samples-failed": Advice._on_half_samples,
    "missing-cells-not-modelled": Advice._on_filled,
    "far-from-zero-column": Advice._on_far,
    "linear-term-needed": Advice._on_missing_linear,
    "linear-term-found": Advice._on_found_linear,
    "linear-term-untested": Advice._on_found_linear,
    "rows-taken-for-independent": Advice._on_independence,
}


def _number(value: object) -> float:
    assert isinstance(value, int | float | np.number)
    return float(value)


def _round(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"


def _set(option: str, value: float) -> str:
    return f"`{option}={_round(value)}`"


def _try(options: Sequence[str]) -> str:
    """Return a sentence that offers the options; none without any."""
    *others, last = options or [""]
    if not last:
        return ""
    return f"Try {', '.join(others)} or {last}." if others else f"Try {last}."


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)
