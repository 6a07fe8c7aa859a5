"""Judging a fit: is it at an optimum, is K positive definite, do data and noise overlap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vnce_engine.contrastive.objective import separated_share
from vnce_engine.contrastive.prepared import RowSample
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.definiteness import smallest_scaled_eigenvalue
from vnce_engine.inference.result import (
    Diagnostics,
    FitResult,
    PenaltyStep,
    Stability,
    path_of_the_chosen,
)
from vnce_engine.optim.surrogate import SurrogatePoint
from vnce_engine.runtime.checks import listed
from vnce_engine.runtime.reports import FitWarning

# Signs that a fit is running away: the penalty no longer holds the interactions, or the noise no
# longer resembles the data.
_LARGEST_INTERACTION = 1.0
_SMALLEST_CLASSIFICATION = 0.3
# Beyond these, noise and data do not overlap. Noise that is fitted leaves hardly a row certain, and
# the mean probability of the wrong class near nu / (1 + nu).
_SEPARATED_SHARE = 0.5
_NO_CLASSIFICATION = 0.02
# A share of draws that count, mostly .98 to 1; a twelfth is the least of twelve draws.
_SMALLEST_EFFECTIVE_SHARE = 0.5
# Clusters that are few for standard errors.
_FEW_CLUSTERS = 30


def diagnose(
    observations: Observations,
    precision: Tensor,
    inverse_k0: Tensor,
    *,
    gradient_norm: float,
    wrong: Tensor | None = None,
    effective_sample_size: float | None = None,
    num_draws: int,
    noise_ratio: float = math.nan,
) -> Diagnostics:
    """Return the figures by which to judge an estimate K (d, d) of columns scaled as `inverse_k0`.

    `wrong` (n,) is the probability of being noise that each data row is given, where there is any.
    """
    smallest = smallest_scaled_eigenvalue(precision)
    return Diagnostics(
        gradient_norm=gradient_norm,
        effective_sample_size=effective_sample_size,
        smallest_eigenvalue=smallest,
        is_positive_definite=smallest > 0,
        separated_share=math.nan if wrong is None else separated_share(wrong),
        mean_classification=math.nan if wrong is None else float(wrong.mean()),
        largest_interaction=_largest_interaction(precision, inverse_k0),
        num_rows=observations.num_rows,
        num_empty_rows=int((~observations.observed.any(dim=1)).sum()),
        # A sum would make whole numbers of a table of truth values, eight times its size.
        num_missing=observations.observed.numel() - int(observations.observed.count_nonzero()),
        num_draws=num_draws,
        noise_ratio=noise_ratio,
        num_clusters=observations.num_clusters,
    )


def diagnose_contrastive(
    observations: Observations,
    sample: RowSample,
    augmented: Tensor,
    point: SurrogatePoint | None,
    inverse_k0: Tensor,
) -> Diagnostics:
    """Return the figures of an estimate (d + 1, d + 1) that tells a sample's data from noise."""
    return diagnose(
        observations,
        augmented[:-1, :-1],
        inverse_k0,
        gradient_norm=math.nan if point is None else float(torch.linalg.norm(point.gradient)),
        wrong=sample.wrong_probability(augmented),
        effective_sample_size=sample.effective_sample_size(),
        num_draws=sample.num_draws,
        noise_ratio=sample.nu,
    )


def _largest_interaction(precision: Tensor, inverse_k0: Tensor) -> float:
    """Return the largest |kappa_ij| = |K_ij| / sqrt(k0_i k0_j) of two different columns."""
    kappa = precision * torch.outer(inverse_k0, inverse_k0).sqrt()
    return float((kappa - torch.diag(kappa.diagonal())).abs().max())


def missing_completely_at_random() -> FitWarning:
    """Return the warning of an estimator that missing cells do not bias."""
    return FitWarning(
        "missing-completely-at-random",
        "Cells are missing: the estimates are valid if cells are missing completely at random, "
        "independently of their own value and of all other cells.",
    )


def definiteness_warnings(diagnostics: Diagnostics) -> list[FitWarning]:
    """Return a warning if K is not positive definite."""
    if diagnostics.is_positive_definite:
        return []
    return [
        FitWarning(
            "not-positive-definite",
            "The precision matrix is not positive definite (smallest eigenvalue of its scaled form "
            f"{diagnostics.smallest_eigenvalue:.3g}): there is no parent Gaussian, so that there "
            "are no partial correlations, and no pair is selected.",
        )
    ]


def numerical_warnings(
    diagnostics: Diagnostics, path: Sequence[PenaltyStep]
) -> tuple[FitWarning, ...]:
    """Return what a reader must know about an estimate; what to do is `advice.py`'s to say."""
    warnings = []
    if diagnostics.num_missing:
        warnings.append(missing_completely_at_random())
    warnings += definiteness_warnings(diagnostics)
    if diagnostics.largest_interaction > _LARGEST_INTERACTION:
        warnings.append(
            FitWarning(
                "large-interaction",
                "The largest interaction |K_ij| / sqrt(k0_i k0_j) of two columns, where k0_i is "
                "column i's precision without interactions, is "
                f"{diagnostics.largest_interaction:.3g}, above {_LARGEST_INTERACTION:g}.",
            )
        )
    warnings += overlap_warnings(diagnostics)
    warnings += grid_end_warnings(path)
    return tuple(warnings)


def is_separated(diagnostics: Diagnostics) -> bool:
    """Return whether noise and data hardly overlap, so that the estimates mean nothing."""
    return (
        diagnostics.separated_share > _SEPARATED_SHARE
        or diagnostics.mean_classification < _NO_CLASSIFICATION
    )


def overlap_warnings(diagnostics: Diagnostics) -> list[FitWarning]:
    """Return warnings of noise that is too easily told from data, or of draws that q misplaces."""
    warnings = []
    if is_separated(diagnostics):
        warnings.append(
            FitWarning(
                "noise-separated",
                "Noise and data hardly overlap: "
                f"{diagnostics.separated_share:.0%} of the rows are classified with near "
                "certainty (mean probability of the wrong class "
                f"{diagnostics.mean_classification:.3g}). K and c are not identified: do not "
                "interpret them.",
            )
        )
    elif diagnostics.mean_classification < _SMALLEST_CLASSIFICATION:
        warnings.append(
            FitWarning(
                "noise-told-apart",
                "Noise and data overlap too little (mean probability of the wrong class "
                f"{diagnostics.mean_classification:.3g}): the estimates may diverge.",
            )
        )
    share = diagnostics.effective_sample_size
    if share is not None and share < _SMALLEST_EFFECTIVE_SHARE:
        warnings.append(
            FitWarning(
                "uneven-latent-draws",
                "The effective sample size of the importance-sampled missing cells is only "
                f"{share:.0%} of the draws: the proposal distribution is far from the model's.",
            )
        )
    return warnings


def grid_end_warnings(path: Sequence[PenaltyStep]) -> list[FitWarning]:
    """Return a warning if the chosen strength is the first or the last of its kind's path."""
    path = path_of_the_chosen(path)
    chosen = next((i for i, step in enumerate(path) if step.chosen), None)
    if chosen not in (0, len(path) - 1) or not path:
        return []
    strength = path[chosen].strength
    if chosen == 0 and path[0].num_edges == 0:
        meaning = (
            " No interaction is left there, so that a stronger one would change nothing. That is "
            "no evidence against structure: a larger table may reveal some."
        )
    elif chosen == 0:
        meaning = " Weak edges at this end are no evidence that edges are absent."
    else:
        meaning = ""
    end = "strongest" if chosen == 0 else "weakest"
    return [
        FitWarning(
            "penalty-at-grid-end",
            f"The chosen penalty {strength:g} is the {end} of {len(path)} on its path.{meaning}",
        )
    ]


def choice_warnings(unsettled: Sequence[str]) -> list[FitWarning]:
    """Return a warning if anything was chosen among fits of which none had settled.

    `unsettled` names what was chosen: "linear term", "penalty".
    """
    if not unsettled:
        return []
    return [
        FitWarning(
            "choice-not-settled",
            "None of the candidate fits had converged; the choice of the "
            f"{' and the '.join(unsettled)} may change with more iterations.",
        )
    ]


@dataclass(frozen=True)
class LinearFinding:
    """What a reader must know of h = 0, which a fit takes for true."""

    p_value: float | None
    """Of the test that rejects it; None where rows are too few for a test."""
    is_added: bool
    """Whether debiased estimates have the term that was found."""


def linear_warnings(finding: LinearFinding | None) -> list[FitWarning]:
    """Return a warning if a fit does without a linear term that it may need."""
    if finding is None:
        return []
    if finding.p_value is None:
        return [
            FitWarning(
                "linear-term-untested",
                "Held-out rows chose no linear term, and rows are too few to test h = 0: where "
                "columns are not densest at zero, many of the edges found may be false.",
            )
        ]
    rejected = f"a test rejects h = 0 (p = {finding.p_value:.1g})"
    if finding.is_added:
        return [
            FitWarning(
                "linear-term-found",
                f"Held-out rows chose no linear term, but {rejected}: "
                "debiased estimates, intervals and verdicts include one, penalised estimates do "
                "not.",
            )
        ]
    return [
        FitWarning(
            "linear-term-needed",
            f"The fit has no linear term, as was asked for, but {rejected}: many of the edges "
            "found may be false.",
        )
    ]


def cluster_warnings(result: FitResult) -> list[FitWarning]:
    """Return what a reader must know of clusters that are few, or that a choice does not know of.

    Source: Cameron and Miller (2015), "A practitioner's guide to cluster-robust inference", J. Hum.
    Resour. 50, section VI, by whom few are fewer than 20 to 50.
    """
    number = result.diagnostics.num_clusters
    if number is None:
        return []
    warnings = []
    if result.uncertainty is not None and number < _FEW_CLUSTERS:
        warnings.append(
            FitWarning(
                "few-clusters",
                f"Standard errors are estimated from {number} clusters: with fewer than "
                f"{_FEW_CLUSTERS}, or with some far larger than others, they are mostly too small "
                "and p-values too low, although Student's t makes up for a part.",
            )
        )
    if result.selection == "ebic":
        warnings.append(
            FitWarning(
                "rows-taken-for-independent",
                "eBIC, which chose the graph, takes rows for independent: with clusters it may "
                "choose edges that are not there.",
            )
        )
    return warnings


def uncounted_pairs_warnings(stability: Stability | None, names: Sequence[str]) -> list[FitWarning]:
    """Return a warning that names the columns which too few half-samples say something of."""
    if stability is None or stability.inclusion is None or stability.counted is None:
        return []
    is_unknown = np.isnan(stability.inclusion)
    if not is_unknown.any():
        return []
    own = stability.counted.diagonal()
    # The fewest columns that all such pairs have one of, as those vary least.
    rare: list[int] = []
    for j in np.argsort(own, kind="stable"):
        if is_unknown[int(j)].any():
            rare.append(int(j))
            is_unknown[int(j)] = is_unknown[:, int(j)] = False
    counts = [f"{names[j]} ({own[j]} of {stability.n_requested})" for j in rare]
    return [
        FitWarning(
            "pairs-without-inclusion",
            f"Too few half-samples have two different values of {listed(counts)}: pairs with them "
            "have no inclusion and are not selected; other pairs are not affected. Leave such "
            "columns out.",
            tuple(names[j] for j in rare),
        )
    ]


def stability_warnings(stability: Stability | None) -> tuple[FitWarning, ...]:
    """Return what a reader must know about half-samples that failed."""
    if stability is None or not stability.n_failed:
        return ()
    causes = "; ".join(f"{count}: {cause}" for cause, count in stability.failures.items())
    failed = f"{stability.n_failed} of {stability.n_requested} half-samples failed ({causes})"
    if stability.inclusion is None:
        return (FitWarning("stability-undetermined", f"{failed}. {stability.reason}."),)
    return (FitWarning("half-samples-failed", f"{failed}. Inclusions are shares of those left."),)
