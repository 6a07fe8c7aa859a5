"""How a network was estimated, in the words of a paper's section on methods, with references."""

from collections import Counter
from collections.abc import Iterator

from service.jobs.specs.comparators import (
    ContrastiveDivergenceEstimatorSpec,
    GaussianEmEstimatorSpec,
    GaussianScoreMatchingEstimatorSpec,
    MleEstimatorSpec,
    PseudoLikelihoodEstimatorSpec,
    ScoreMatchingEstimatorSpec,
)
from service.jobs.specs.contrastive import NceEstimatorSpec, VnceEstimatorSpec
from service.jobs.specs.estimation import EstimationSpec, EstimatorSpec
from service.jobs.specs.models import GaussianModelSpec
from service.jobs.vocabulary import FdrMethod, LinearChoice, PenaltyKind, Selection, Transform
from service.results.schemas import EstimationResult, PenaltyRead

_REFERENCES = {
    "Benjamini and Hochberg, 1995": "Y. Benjamini and Y. Hochberg (1995). Controlling the false "
    "discovery rate: a practical and powerful approach to multiple testing. Journal of the Royal "
    "Statistical Society B 57, 289–300.",
    "Benjamini and Yekutieli, 2001": "Y. Benjamini and D. Yekutieli (2001). The control of the "
    "false discovery rate in multiple testing under dependency. Annals of Statistics 29, "
    "1165–1188.",
    "Besag, 1975": "J. Besag (1975). Statistical analysis of non-lattice data. The Statistician "
    "24, 179–195.",
    "Dempster, Laird and Rubin, 1977": "A. P. Dempster, N. M. Laird and D. B. Rubin (1977). "
    "Maximum likelihood from incomplete data via the EM algorithm. Journal of the Royal "
    "Statistical Society B 39, 1–38.",
    "Foygel and Drton, 2010": "R. Foygel and M. Drton (2010). Extended Bayesian information "
    "criteria for Gaussian graphical models. NIPS 23.",
    "Givens, Liu and Reeve, 2025": "J. Givens, S. Liu and H. W. J. Reeve (2025). Score matching "
    "with missing data. ICML.",
    "Gutmann and Hyvärinen, 2012": "M. U. Gutmann and A. Hyvärinen (2012). Noise-contrastive "
    "estimation of unnormalized statistical models, with applications to natural image "
    "statistics. Journal of Machine Learning Research 13, 307–361.",
    "Hinton, 2002": "G. E. Hinton (2002). Training products of experts by minimizing contrastive "
    "divergence. Neural Computation 14, 1771–1800.",
    "Hyvärinen, 2007": "A. Hyvärinen (2007). Some extensions of score matching. Computational "
    "Statistics and Data Analysis 51, 2499–2512.",
    "Meinshausen and Bühlmann, 2010": "N. Meinshausen and P. Bühlmann (2010). Stability "
    "selection. Journal of the Royal Statistical Society B 72, 417–473.",
    "Rhodes and Gutmann, 2019": "B. Rhodes and M. U. Gutmann (2019). Variational "
    "noise-contrastive estimation. AISTATS, arXiv:1810.08010.",
    "van de Geer et al., 2014": "S. van de Geer, P. Bühlmann, Y. Ritov and R. Dezeure (2014). On "
    "asymptotically optimal confidence regions and tests for high-dimensional models. Annals of "
    "Statistics 42, 1166–1202.",
    "White, 1982": "H. White (1982). Maximum likelihood estimation of misspecified models. "
    "Econometrica 50, 1–25.",
}
_TRANSFORMS = {
    Transform.NONE: "as they are",
    Transform.CBRT: "after their cube root was taken",
    Transform.SQRT: "after their square root was taken",
    Transform.LOG1P: "after log(1 + x) was taken",
    Transform.RANK_NORMAL: "after a smooth map by ranks to quantiles of a normal distribution",
}
_FILLINGS: dict[str, str] = {
    "mean": "missing cells filled by their column's mean",
    "zero": "missing cells filled by zero",
    "noise": "missing cells filled by draws of the noise",
    "drop": "rows with missing cells left out",
    "gibbs": "missing cells drawn under the estimate",
}
_PENALTIES = {
    PenaltyKind.ADAPTIVE: "an adaptive ridge that spares strong interactions",
    PenaltyKind.RIDGE: "a ridge",
    PenaltyKind.CENTRED_RIDGE: "a ridge towards the interactions' mean",
    PenaltyKind.L1: "an L1 penalty",
}
_CHOICES = {
    Selection.HELD_OUT: "chosen by the objective of held-out rows",
    Selection.EBIC: "one of which was chosen by the extended Bayesian information criterion "
    "(Foygel and Drton, 2010)",
    Selection.STABILITY: "one of which was chosen by stability selection "
    "(Meinshausen and Bühlmann, 2010)",
}


def methods(spec: EstimationSpec, result: EstimationResult) -> str:
    """Return the paragraph; works are cited as `references` finds them."""
    return " ".join(_sentences(spec, result))


def references(text: str) -> list[str]:
    """Return the works that a text cites, in order."""
    return [work for citation, work in _REFERENCES.items() if citation in text]


def _sentences(spec: EstimationSpec, result: EstimationResult) -> Iterator[str]:
    is_gaussian = isinstance(spec.model, GaussianModelSpec)
    support = (
        "with mean and precision matrix K"
        if is_gaussian
        else ("truncated to non-negative values, with density proportional to exp(−½xᵀKx + hᵀx)")
    )
    yield (
        f"The {result.counts.n_variables} variables, {_transformed(result)}, were modelled by a "
        f"Gaussian {support}."
    )
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
    yield from _inference(result)
    versions = result.versions
    yield (
        f"Computed with VNCE {versions.vnce} (Python {versions.python}, NumPy {versions.numpy}, "
        f"SciPy {versions.scipy}, PyTorch {versions.torch}), seed {result.seed}."
    )


def _transformed(result: EstimationResult) -> str:
    if not isinstance(result.transform, list):
        return _TRANSFORMS[result.transform]
    counts = Counter(result.transform)
    return "; ".join(f"{number} {_TRANSFORMS[name]}" for name, number in counts.most_common())


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
            return "Monte-Carlo maximum likelihood, missing cells drawn under the estimate"
        case ContrastiveDivergenceEstimatorSpec():
            return "contrastive divergence (Hinton, 2002), missing cells drawn under the estimate"
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
        return f"A path of penalties gave graphs, {how}; K was fitted to it without a penalty."
    return ""


def _inference(result: EstimationResult) -> Iterator[str]:
    said = result.uncertainty
    if said is None or said.reason is not None:
        return
    yield (
        "Partial correlations were freed of the penalty's bias by one step (van de Geer et al., "
        "2014) and have standard errors from the variance of the objective's slopes (White, "
        "1982; Gutmann and Hyvärinen, 2012); intervals, of 95 %, and tests are by Student's t."
    )
    work = (
        "Benjamini and Hochberg, 1995"
        if said.fdr_method is FdrMethod.BENJAMINI_HOCHBERG
        else "Benjamini and Yekutieli, 2001"
    )
    yield (
        f"A pair is called present where its q-value ({work}) is at most {said.fdr:g} and "
        "its interval not all of -1 to 1, else absent "
        f"where its interval lies within ±{result.edge_rule.threshold:g}, else undecided."
    )
