"""What VNCE and NCE of any network share: penalties, how their strength is chosen, and noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, cast

import numpy as np

from vnce_engine.contrastive.truncated_problem import NOISE_SCALES
from vnce_engine.data.observations import Observations
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.choices import Choices
from vnce_engine.inference.centrality import centralities
from vnce_engine.inference.result import EdgeRule, FitResult, Verdict
from vnce_engine.inference.significance import DiscoveryRule, EdgeTests, FdrMethod
from vnce_engine.penalties.penalty import PenaltyKind, PenaltyName
from vnce_engine.pipeline.fit import AUTO, MAX_CYCLES, FitOptions
from vnce_engine.runtime.checks import (
    check_choice,
    check_count,
    check_number,
    check_positive,
    check_range,
    is_whole,
    shown,
)
from vnce_engine.runtime.device import chosen_device
from vnce_engine.runtime.reports import FitWarning
from vnce_engine.selection.choice import Selection
from vnce_engine.selection.stability import StabilityRule, has_bound

# More are a slip: their memory, or their time, would not do.
_MOST_NOISE, _MOST_SUBSAMPLES = 10_000, 100_000
# Below it the bound on false edges says next to nothing.
_SMALLEST_THRESHOLD = 0.6


@dataclass(kw_only=True, eq=False, repr=False)
class ContrastiveEstimator(NetworkEstimator):
    """A network told from noise; subclasses say of which model, and what of missing cells."""

    # That of the adaptive penalty where choices are held: a given strength alone has another.
    _relaxation = cast(float | None, None)

    penalty: float | Literal["auto"] | None = "auto"
    penalty_kind: PenaltyName | Literal["auto"] = "auto"
    penalties: Sequence[float] | None = None
    selection: Literal["held-out", "ebic", "stability"] = "held-out"
    ebic_gamma: float = 0.5
    n_subsamples: int = 100
    inclusion_threshold: float = 0.75
    max_false_edges: float = 2.0
    fdr: float = 0.1
    fdr_method: Literal["benjamini-hochberg", "benjamini-yekutieli"] = "benjamini-hochberg"
    noise_ratio: int = 10
    noise_scale: float = 1.0
    noise_draws: Literal["sobol", "random"] = "sobol"
    tol: float = 3e-3
    device: Literal["auto", "cpu", "cuda"] = "cpu"

    def with_choices(self, choices: Choices) -> Self:
        """Return it unfitted, with these choices wherever its parameters leave one open.

        A graph that eBIC chose is chosen again, at the strength of that choice. Raises `ValueError`
        where half-samples chose it.
        """
        if self.selection == "stability":
            raise ValueError(
                "a graph that `selection='stability'` chose by half-samples cannot be held in "
                "other fits; `stability_` says how stable its edges are"
            )
        if self.selection == "ebic":
            held = super().with_choices(replace(choices, penalty=None, penalty_kind=None))
            held.set_params(penalties=(choices.graph_strength,))
            return held
        held = super().with_choices(choices)
        held._relaxation = choices.relaxation
        return held

    def _options(self) -> FitOptions:
        return FitOptions(
            penalty=self.penalty if isinstance(self.penalty, str | None) else float(self.penalty),
            penalty_kind=None if self.penalty_kind == AUTO else PenaltyKind(self.penalty_kind),
            penalties=None
            if self.penalties is None
            else tuple(sorted({float(strength) for strength in self.penalties}, reverse=True)),
            selection=Selection(self.selection),
            ebic_gamma=self.ebic_gamma,
            stability=StabilityRule(
                int(self.n_subsamples), self.inclusion_threshold, float(self.max_false_edges)
            ),
            noise_ratio=int(self.noise_ratio),
            noise_scale=self.noise_scale,
            noise_draws=self.noise_draws,
            relaxation=self._relaxation,
            tolerance=self.tol,
            max_cycles=MAX_CYCLES if self.max_iter is None else self.max_iter,
            device=self.device,
        )

    def _present(
        self, result: FitResult, observations: Observations, warnings: Sequence[FitWarning]
    ) -> None:
        super()._present(result, observations, warnings)
        if result.uncertainty is None:
            return
        rule = DiscoveryRule(self.fdr, FdrMethod(self.fdr_method), self.edge_threshold)
        tests = EdgeTests.of(
            result.uncertainty, observations.num_pairwise_independent().numpy(), rule
        )
        self.edges_ = [tests.judge(edge) for edge in self.edges_]
        self.centrality_ = centralities(result.uncertainty, self.edges_, observations.num_clusters)
        if result.selection not in (Selection.EBIC, Selection.STABILITY):
            self.edge_rule_ = EdgeRule.FALSE_DISCOVERY_RATE
            self.edges_ = [
                replace(edge, selected=edge.verdict is Verdict.PRESENT) for edge in self.edges_
            ]

    def _check_parameters(self) -> None:
        check_choice("penalty_kind", self.penalty_kind, (AUTO, *PenaltyKind))
        check_choice("noise_draws", self.noise_draws, ("sobol", "random"))
        if self.penalty is not None and not self._is_auto():
            check_number("penalty", self.penalty, "'auto', None or a positive number", 0, math.inf)
        check_count("noise_ratio", self.noise_ratio, most=_MOST_NOISE)
        check_number("tol", self.tol, "a number between 0 and 1", 0, 1)
        check_number("fdr", self.fdr, "a number between 0 and 1", 0, 1)
        check_choice("fdr_method", self.fdr_method, tuple(FdrMethod))
        check_choice("selection", self.selection, tuple(Selection))
        check_range("ebic_gamma", self.ebic_gamma, 0, 1)
        check_range("inclusion_threshold", self.inclusion_threshold, _SMALLEST_THRESHOLD, 1)
        check_positive("max_false_edges", self.max_false_edges)
        check_range("noise_scale", self.noise_scale, *NOISE_SCALES)
        chosen_device(self.device)
        self._check_penalties()
        self._check_selection()

    def _is_auto(self) -> bool:
        return isinstance(self.penalty, str) and self.penalty == AUTO

    def _check_selection(self) -> None:
        is_count = is_whole(self.n_subsamples) and 2 <= self.n_subsamples <= _MOST_SUBSAMPLES
        if not is_count or self.n_subsamples % 2:
            raise ValueError(
                f"`n_subsamples` must be an even number from 2 to {_MOST_SUBSAMPLES}, got "
                f"{shown(self.n_subsamples)}"
            )
        selection = Selection(self.selection)
        if selection is Selection.HELD_OUT:
            return
        if self.penalty_kind != "l1":
            raise ValueError(
                f"`selection={self.selection!r}` needs `penalty_kind='l1'`, whose zeros make a "
                f"graph, got {self.penalty_kind!r}"
            )
        if not self._is_auto():
            raise ValueError(
                f"`selection={self.selection!r}` needs `penalty='auto'`, got {self.penalty!r}"
            )
        if selection is Selection.STABILITY and not has_bound(
            self.inclusion_threshold, self.n_subsamples // 2
        ):
            raise ValueError(
                f"`inclusion_threshold={self.inclusion_threshold:g}` gives no bound on the number "
                f"of false edges with `n_subsamples={self.n_subsamples}`; increase it"
            )

    def _check_penalties(self) -> None:
        if self.penalties is None:
            return
        if not self._is_auto():
            raise ValueError(f"`penalties` needs `penalty='auto'`, got {self.penalty!r}")
        is_list = isinstance(self.penalties, Sequence | np.ndarray)
        if isinstance(self.penalties, str) or not is_list or not len(self.penalties):
            raise ValueError(
                f"`penalties` must be None or positive numbers, got {shown(self.penalties)}"
            )
        for strength in self.penalties:
            check_positive("penalties", strength)
