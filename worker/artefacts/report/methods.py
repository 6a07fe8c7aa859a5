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
from service.results.schemas import EstimationResult, PenaltyRead, VersionsRead

_REFERENCES = {
    "Barrat et al., 2004": "A. Barrat, M. Barthélemy, R. Pastor-Satorras and A. Vespignani (2004). "
    "The architecture of complex weighted networks. Proceedings of the National Academy of "
    "Sciences 101, 3747–3752.",
    "Benjamini and Hochberg, 1995": "Y. Benjamini and Y. Hochberg (1995). Controlling the false "
    "discovery rate: a practical and powerful approach to multiple testing. Journal of the Royal "
    "Statistical Society B 57, 289–300.",
    "Benjamini and Yekutieli, 2001": "Y. Benjamini and D. Yekutieli (2001). The control of the "
    "false discovery rate in multiple testing under dependency. Annals of Statistics 29, "
    "1165–1188.",
    "Besag, 1975": "J. Besag (1975). Statistical analysis of non-lattice data. The Statistician "
    "24, 179–195.",
    "Cameron and Miller, 2015": "A. C. Cameron and D. L. Miller (2015). A practitioner's guide to "
    "cluster-robust inference. Journal of Human Resources 50, 317–372.",
    "Dempster, Laird and Rubin, 1977": "A. P. Dempster, N. M. Laird and D. B. Rubin (1977). "
    "Maximum likelihood from incomplete data via the EM algorithm. Journal of the Royal "
    "Statistical Society B 39, 1–38.",
    "Efron and Tibshirani, 1993": "B. Efron and R. J. Tibshirani (1993). An introduction to the "
    "bootstrap. Chapman and Hall.",
    "Foygel and Drton, 2010": "R. Foygel and M. Drton (2010). Extended Bayesian information "
    "criteria for Gaussian graphical models. NIPS 23.",
    "Givens, Liu and Reeve, 2025": "J. Givens, S. Liu and H. W. J. Reeve (2025). Score matching "
    "with missing data. ICML.",
    "Gutmann and Hyvärinen, 2012": "M. U. Gutmann and A. Hyvärinen (2012). Noise-contrastive "
    "estimation of unnormalized statistical models, with applications to natural image "
    "statistics. Journal of Machine Learning Research 13, 307–361.",
    "Haslbeck and Waldorp, 2018": "J. M. B. Haslbeck and L. J. Waldorp (2018). How well do network "
    "models predict observations? On the importance of predictability in network models. Behavior "
    "Research Methods 50, 853–861.",
    "Hinton, 2002": "G. E. Hinton (2002). Training products of experts by minimizing contrastive "
    "divergence. Neural Computation 14, 1771–1800.",
    "Hyvärinen, 2007": "A. Hyvärinen (2007). Some extensions of score matching. Computational "
    "Statistics and Data Analysis 51, 2499–2512.",
    "Meinshausen and Bühlmann, 2010": "N. Meinshausen and P. Bühlmann (2010). Stability "
    "selection. Journal of the Royal Statistical Society B 72, 417–473.",
    "Phipson and Smyth, 2010": "B. Phipson and G. K. Smyth (2010). Permutation p-values should "
    "never be zero. Statistical Applications in Genetics and Molecular Biology 9, 39.",
    "Rhodes and Gutmann, 2019": "B. Rhodes and M. U. Gutmann (2019). Variational "
    "noise-contrastive estimation. AISTATS, arXiv:1810.08010.",
    "Robinaugh, Millner and McNally, 2016": "D. J. Robinaugh, A. J. Millner and R. J. McNally "
    "(2016). Identifying highly influential nodes in the complicated grief network. Journal of "
    "Abnormal Psychology 125, 747–757.",
    "van Borkulo et al., 2022": "C. D. van Borkulo, R. van Bork, L. Boschloo, J. J. Kossakowski, "
    "P. Tio, R. A. Schoevers, D. Borsboom and L. J. Waldorp (2022). Comparing network structures "
    "on three aspects: a permutation test. Psychological Methods.",
    "van de Geer et al., 2014": "S. van de Geer, P. Bühlmann, Y. Ritov and R. Dezeure (2014). On "
    "asymptotically optimal confidence regions and tests for high-dimensional models. Annals of "
    "Statistics 42, 1166–1202.",
    "White, 1982": "H. White (1982). Maximum likelihood estimation of misspecified models. "
    "Econometrica 50, 1–25.",
}
_TRANSFORMS = {
    Transform.NONE: "untransformed",
    Transform.CBRT: "cube-root transformed",
    Transform.SQRT: "square-root transformed",
    Transform.LOG1P: "log(1 + x)-transformed",
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


def computed_with(versions: VersionsRead, seed: int) -> str:
    """Return the sentence on software and seed."""
    return (
        f"Computed with VNCE {versions.vnce} (Python {versions.python}, NumPy {versions.numpy}, "
        f"SciPy {versions.scipy}, PyTorch {versions.torch}), seed {seed}."
    )


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
        f"The {result.counts.n_variables} variables, "
        f"{_transformed(result, is_gaussian=is_gaussian)}, were modelled by a Gaussian {support}."
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


def _transformed(result: EstimationResult, *, is_gaussian: bool) -> str:
    scores = "normal" if is_gaussian else "half-normal"
    words = _TRANSFORMS | {Transform.RANK_NORMAL: f"as smoothed {scores} scores of their ranks"}
    if not isinstance(result.transform, list):
        return words[result.transform]
    counts = Counter(result.transform)
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
