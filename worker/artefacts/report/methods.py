"""How a network was estimated, in the words of a paper's section on methods."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from service.jobs.specs.comparators import (
    ContrastiveDivergenceEstimatorSpec,
    GaussianEmEstimatorSpec,
    GaussianScoreMatchingEstimatorSpec,
    MleEstimatorSpec,
    PseudoLikelihoodEstimatorSpec,
    ScoreMatchingEstimatorSpec,
)
from service.jobs.specs.contrastive import ContrastiveSpec, NceEstimatorSpec, VnceEstimatorSpec
from service.jobs.specs.estimation import EstimationSpec, EstimatorSpec
from service.jobs.specs.models import GaussianModelSpec, ModelSpec
from service.jobs.vocabulary import (
    FdrMethod,
    LassoChoice,
    LinearChoice,
    PenaltyChoice,
    PenaltyKind,
    Selection,
    Transform,
)
from service.results.choices import AppliedTransforms, PenaltyRead
from service.results.comparison_result import ComparedFitRead
from service.results.schemas import EstimationResult, VersionsRead
from service.results.vocabulary import EdgeRule

_TRANSFORMS = {
    Transform.NONE: "untransformed",
    Transform.CBRT: "cube-root transformed",
    Transform.SQRT: "square-root transformed",
    Transform.LOG1P: "log(1 + x)-transformed",
    # Of a fit that has failed.
    Transform.AUTO: "with a transform that held-out rows choose",
}
_FILLINGS: dict[str, str] = {
    "mean": "missing cells filled by their column's mean",
    "zero": "missing cells filled by zero",
    "noise": "missing cells filled by draws of the noise",
    "drop": "rows with missing cells left out",
    "gibbs": "missing cells imputed by Gibbs sampling from the fitted model",
}
_PENALTIES = {
    PenaltyKind.ADAPTIVE: "½τ² Σ log(1 + κ_ij²/τ²) of the scaled interactions κ_ij, which hardly "
    "shrinks strong ones",
    PenaltyKind.RIDGE: "a ridge",
    PenaltyKind.CENTRED_RIDGE: "a ridge towards the interactions' mean",
    PenaltyKind.L1: "an L1 penalty",
}
_CHOSEN_SHAPE = f"{_PENALTIES[PenaltyKind.ADAPTIVE]}, or {_PENALTIES[PenaltyKind.CENTRED_RIDGE]}"
_CHOICES = {
    Selection.HELD_OUT: "chosen by the objective of held-out rows",
    Selection.EBIC: "one of which was chosen by the extended Bayesian information criterion "
    "(Foygel and Drton, 2010)",
    Selection.STABILITY: "one of which was chosen by stability selection "
    "(Meinshausen and Bühlmann, 2010)",
}


@dataclass(frozen=True)
class Paragraph:
    """One of the section on methods; works are cited as `references.cited` finds them."""

    text: str
    about: str = ""
    """What it is about, where there are several."""


def methods(spec: EstimationSpec, result: EstimationResult) -> str:
    """Return how a network was estimated."""
    return " ".join(_sentences(spec, result))


def compared_methods(spec: EstimationSpec, fit: ComparedFitRead | None, num_variables: int) -> str:
    """Return how one of several models was estimated; what it chose is known of its `fit` only."""
    return " ".join(_compared_sentences(spec, fit, num_variables))


def computed_with(versions: VersionsRead, seed: int) -> str:
    """Return the sentence on software and seed."""
    return (
        f"Computed with VNCE {versions.vnce} (Python {versions.python}, NumPy {versions.numpy}, "
        f"SciPy {versions.scipy}, PyTorch {versions.torch}), seed {seed}."
    )


def _sentences(spec: EstimationSpec, result: EstimationResult) -> Iterator[str]:
    is_gaussian = isinstance(spec.model, GaussianModelSpec)
    yield _modelled(spec.model, result.counts.n_variables, result.transform)
    if result.transform_evidence:
        yield "That transform was chosen by the log density of held-out rows."
    if not is_gaussian:
        is_free = result.linear.choice is LinearChoice.FREE
        yield f"The linear term h was {'estimated' if is_free else 'zero'}."
    yield f"K was estimated by {_estimator(spec.estimator)}."
    if result.penalty is not None and (said := _penalty(result.penalty)):
        yield said
    yield (
        "A pair of variables that are independent given all others has partial correlation zero: "
        "−K_ij / √(K_ii K_jj)."
    )
    yield from _inference(result, is_gaussian=is_gaussian)
    if any(variable.strength is not None for variable in result.variables):
        yield (
            "A variable's strength is the sum of the sizes of its present pairs' partial "
            "correlations (Barrat et al., 2004), its expected influence the sum of all, with "
            "signs (Robinaugh, Millner and McNally, 2016)."
        )
    if any(variable.predictability is not None for variable in result.variables):
        yield (
            "A variable's predictability is the share of its variance that all others explain "
            "(Haslbeck and Waldorp, 2018)."
        )


def _compared_sentences(
    spec: EstimationSpec, fit: ComparedFitRead | None, num_variables: int
) -> Iterator[str]:
    yield _modelled(
        spec.model, num_variables, spec.model.transform if fit is None else fit.transform
    )
    if fit is not None and spec.model.transform is Transform.AUTO:
        yield "That transform was chosen by the log density of held-out rows."
    if not isinstance(spec.model, GaussianModelSpec):
        match spec.model.linear:
            case LinearChoice.AUTO:
                yield "Held-out rows decided whether the linear term h was estimated or zero."
            case LinearChoice.FREE:
                yield "The linear term h was estimated."
            case LinearChoice.ZERO:
                yield "The linear term h was zero."
            case unknown:
                assert_never(unknown)
    yield f"K was estimated by {_estimator(spec.estimator)}."
    if said := _penalty_asked(spec.estimator):
        yield said
    if fit is None:
        return
    if fit.decided_by is EdgeRule.FALSE_DISCOVERY_RATE and isinstance(
        spec.estimator, ContrastiveSpec
    ):
        work = _work(spec.estimator.fdr_method)
        yield f"Pairs were selected at a false discovery rate of {spec.estimator.fdr:g} ({work})."
    else:
        yield f"Pairs of a partial correlation of {spec.edge_threshold:g} or more were selected."


def _modelled(model: ModelSpec, num_variables: int, transform: AppliedTransforms) -> str:
    is_gaussian = isinstance(model, GaussianModelSpec)
    support = (
        "with mean and precision matrix K"
        if is_gaussian
        else ("truncated to non-negative values, with density proportional to exp(−½xᵀKx + hᵀx)")
    )
    transformed = _transformed(transform, is_gaussian=is_gaussian)
    return f"The {num_variables} variables, {transformed}, were modelled by a Gaussian {support}."


def _transformed(transform: AppliedTransforms, *, is_gaussian: bool) -> str:
    scores = "normal" if is_gaussian else "half-normal"
    words = _TRANSFORMS | {Transform.RANK_NORMAL: f"as smoothed {scores} scores of their ranks"}
    if not isinstance(transform, list):
        return words[transform]
    counts = Counter(transform)
    return "; ".join(f"{number} {words[name]}" for name, number in counts.most_common())


def _estimator(estimator: EstimatorSpec) -> str:
    match estimator:
        case VnceEstimatorSpec():
            return (
                "variational noise-contrastive estimation (Rhodes and Gutmann, 2019), in which "
                "missing cells are latent variables that are integrated out, with "
                f"{estimator.noise_ratio} noise rows per row of data"
            )
        case NceEstimatorSpec():
            return (
                "noise-contrastive estimation (Gutmann and Hyvärinen, 2012), "
                f"{_FILLINGS[estimator.imputation]}, with {estimator.noise_ratio} noise rows per "
                "row of data"
            )
        case MleEstimatorSpec():
            return f"Monte-Carlo maximum likelihood, {_FILLINGS['gibbs']}"
        case ContrastiveDivergenceEstimatorSpec():
            return f"contrastive divergence (Hinton, 2002), {_FILLINGS['gibbs']}"
        case PseudoLikelihoodEstimatorSpec():
            return f"pseudo-likelihood (Besag, 1975), {_FILLINGS[estimator.imputation]}"
        case ScoreMatchingEstimatorSpec():
            return (
                "score matching of non-negative data (Hyvärinen, 2007), "
                f"{_FILLINGS[estimator.imputation]}"
            )
        case GaussianEmEstimatorSpec():
            return (
                "maximum likelihood of the observed cells by the EM algorithm (Dempster, Laird and "
                "Rubin, 1977)"
            )
        case GaussianScoreMatchingEstimatorSpec():
            return "score matching of each row's observed cells (Givens, Liu and Reeve, 2025)"


def _penalty(penalty: PenaltyRead) -> str:
    how = "set by hand" if penalty.selection is None else _CHOICES[penalty.selection]
    if penalty.fitted_kind is not None and penalty.strength is not None:
        kind = _PENALTIES[penalty.fitted_kind]
        return f"The penalty was {kind}; its strength, {penalty.strength:.4g}, was {how}."
    if penalty.path:
        return f"A path of penalties gave graphs, {how}; K was refitted to that graph, unpenalised."
    return ""


def _penalty_asked(estimator: EstimatorSpec) -> str:
    """Return what there is to say of the penalty before the fit has chosen."""
    penalty = estimator.penalty
    if penalty is None:
        return ""
    if isinstance(penalty, float):
        how = f"its strength, {penalty:.4g}, was set by hand"
    elif penalty is PenaltyChoice.AUTO and isinstance(estimator, ContrastiveSpec):
        if estimator.selection is not Selection.HELD_OUT:
            return (
                f"A path of L1 penalties gave graphs, {_CHOICES[estimator.selection]}; K was "
                "refitted to that graph, unpenalised."
            )
        how = f"its strength was {_CHOICES[Selection.HELD_OUT]}"
    else:
        rule = Selection.EBIC if penalty is LassoChoice.EBIC else Selection.HELD_OUT
        how = "its strength was " + _CHOICES[rule].removeprefix("one of which was ")
    return f"The penalty was {_shape(estimator)}; {how}."


def _shape(estimator: EstimatorSpec) -> str:
    match estimator:
        case GaussianEmEstimatorSpec():
            return "a graphical lasso"
        case GaussianScoreMatchingEstimatorSpec():
            return _PENALTIES[PenaltyKind.RIDGE]
        case _:
            return (
                _CHOSEN_SHAPE
                if estimator.penalty_kind is PenaltyKind.AUTO
                else _PENALTIES[estimator.penalty_kind]
            )


def _work(method: FdrMethod | None) -> str:
    return (
        "Benjamini and Hochberg, 1995"
        if method is FdrMethod.BENJAMINI_HOCHBERG
        else "Benjamini and Yekutieli, 2001"
    )


def _inference(result: EstimationResult, *, is_gaussian: bool) -> Iterator[str]:
    said = result.uncertainty
    if said is None or said.reason is not None:
        return
    objective, works = (
        ("the noise-contrastive objective", "White, 1982; Gutmann and Hyvärinen, 2012")
        if is_gaussian
        else (
            "the Monte-Carlo likelihood of the observed cells",
            "White, 1982",
        )
    )
    yield (
        f"Partial correlations were debiased by one Newton step of {objective} without the penalty "
        f"(van de Geer et al., 2014), with sandwich standard errors ({works}); 95 % "
        "confidence intervals and tests are by Student's t."
    )
    if (number := result.counts.n_clusters) is not None:
        yield (
            f"Standard errors allow for dependence within {number} clusters of rows, which "
            "held-out rows keep together (Cameron and Miller, 2015)."
        )
    if said.linear is LinearChoice.FREE and result.linear.choice is LinearChoice.ZERO:
        yield "A test found a linear term; the step estimated it, too."
    yield (
        f"A pair is called present where its q-value ({_work(said.fdr_method)}) is at most "
        f"{said.fdr:g} and its interval not all of -1 to 1, else absent "
        f"where its interval lies within ±{result.edge_rule.threshold:g}, else undecided."
    )
