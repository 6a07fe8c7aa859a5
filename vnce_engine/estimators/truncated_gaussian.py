"""VNCE and NCE of the truncated Gaussian."""

from dataclasses import dataclass, replace
from typing import Literal

from vnce_engine.comparators.filling import Imputation, fit_filled
from vnce_engine.contrastive.paper_recipe import MAX_ITERATIONS
from vnce_engine.data.columns import refuse_zeros
from vnce_engine.data.observations import Observations
from vnce_engine.estimators.contrastive import ContrastiveEstimator
from vnce_engine.inference.result import FitResult
from vnce_engine.pipeline.fit import AUTO, FitOptions
from vnce_engine.pipeline.model_fits import fit_truncated_gaussian
from vnce_engine.pipeline.paper_preset import fit_by_papers_recipe
from vnce_engine.runtime.checks import check_choice
from vnce_engine.runtime.progress import Progress


@dataclass(kw_only=True, eq=False, repr=False)
class TruncatedGaussianEstimator(ContrastiveEstimator):
    """A truncated Gaussian network, fitted by telling data from noise."""

    linear: Literal["auto", "free", "zero"] = "auto"

    def _options(self) -> FitOptions:
        return replace(super()._options(), linear=self.linear)

    def _check_parameters(self) -> None:
        check_choice("linear", self.linear, (AUTO, "free", "zero"))
        super()._check_parameters()


@dataclass(kw_only=True, eq=False, repr=False)
class TruncatedGaussianVNCE(TruncatedGaussianEstimator):
    """Truncated Gaussian network from a table with missing cells, by variational NCE.

    The model of a (transformed) row x >= 0 is exp(-½ xᵀKx + hᵀx - c). Missing cells are latent
    variables; noise rows carry the missingness of the data rows.

    Parameters
    ----------
    linear : "auto", "free" or "zero"
        Whether the linear term h is estimated; "zero" is the paper's model, and "auto" decides by
        the held-out objective ("free" where a column lies over 1,000 standard deviations above 0).
    column_transform : str or sequence of str
        "none", "sqrt", "cbrt", "log1p" or "rank-normal", or one of them for each column, applied to
        observed cells; K, h and c are those of the transformed columns. "rank-normal" maps a column
        smoothly to the quantiles of half a normal distribution, by its ranks. "auto" chooses: the
        best log density of held-out rows, three folds, in the units of X; "rank-normal" only where
        it gains one standard error, and a transform for each column where that gains two.
    penalty : "auto", float or None
        Strength of the penalty, as it is for 1000 rows: "auto" chooses it by `selection`, None
        switches it off, which needs more rows than parameters.
    penalty_kind : "auto", "adaptive", "ridge", "centred-ridge" or "l1"
        "adaptive" shrinks strong interactions hardly at all, "ridge" all in proportion,
        "centred-ridge" towards their mean, and "l1" all by the same amount, so that weak ones are
        exactly zero. "auto" is "adaptive" or, where held-out rows that choose the strength prefer
        it, "centred-ridge"; `penalty_kind_` says which.
    penalties : sequence of float or None
        The strengths to choose from if `penalty="auto"`; None for a grid of the engine's own.
    selection : "held-out", "ebic" or "stability"
        How `penalty="auto"` chooses. "held-out": the best objective of held-out rows, ten folds,
        or rather a mean of the strengths that do about as well. The other two need
        `penalty_kind="l1"`; they choose a graph and fit K to it without a penalty. "ebic": the
        graph of least extended Bayesian information criterion. "stability": the edges on which
        most half-samples agree.
    ebic_gamma : float
        Weight, from 0 to 1, of the number of possible graphs in the criterion; 0 is the BIC.
    n_subsamples : int
        Half-samples for "stability", an even number.
    inclusion_threshold : float
        Share of half-samples, from 0.6 to 1, from which an edge is stable.
    max_false_edges : float
        The strength for "stability" is the weakest whose bound on the expected number of false
        edges is at most this.
    fdr : float
        False discovery rate: the expected share of false edges among those whose verdict is that
        they are present. An edge is so if its q-value is at most this and
        its interval not all of -1 to 1.
    fdr_method : "benjamini-hochberg" or "benjamini-yekutieli"
        How q-values are made of p-values: the second holds whatever the tests' dependence, and
        finds fewer edges.
    noise_ratio : int
        Noise rows a data row, nu; three times as many in the last cycles. Short tables have more,
        6,000 in all.
    noise_scale : float
        Multiplies each column's fitted noise standard deviation, 0.001 to 1000; 1 leaves it.
    noise_draws : "sobol" or "random"
        Evenly spread or independent noise.
    preset : "default" or "paper"
        "paper" is the recipe of Rhodes and Gutmann (2019), for reference: it fixes nu = 10, random
        draws and a log-normal q, has its own stopping rule instead of `tol`, and takes "auto" to
        mean linear="zero" and penalty=None.
    random_state : int, Generator, RandomState or None
        Seed of every draw; the same int, 0 unless given, gives the same result. None draws one.
    max_iter : int or None
        Cycles of the final fit at most: 100 if None (80 BFGS iterations for the paper's recipe).
    tol : float
        Change of K and h, columns scaled to K_ii = 1, at which a fit has converged; it also has
        where a step is shorter than 7.5 `tol`, and .0225 at most, standard errors of the
        parameters (root mean square).
    min_observed : int or None
        Observed cells that every column needs; None for 10 or 2 % of the rows that have any, if
        that is more, but not more than half of them.
    edge_threshold : float
        |partial correlation| from which an edge matters: one whose interval lies within this has
        the verdict that it is absent. Where edges have no intervals, and of a graph by "ebic" or
        "stability", the pairs that reach it are `selected`; elsewhere those found present are.
    device : "auto", "cpu" or "cuda"
        Where the fit works: "auto" is CUDA where there is a device. The same numbers are drawn
        everywhere, and results agree to 1e-6; the CPU is the default so that they agree to the bit.

    Attributes
    ----------
    precision_ : ndarray (d, d)
        K, exactly symmetric, its diagonal positive. Interactions, not an inverse covariance.
    linear_ : ndarray (d,)
        h; zero where `linear_choice_` is "zero".
    log_partition_ : float
        c, an estimate of the log of the normalising integral.
    scaled_interaction_ : ndarray (d, d)
        -K_ij / sqrt(K_ii K_jj), free of units, of any size where K is indefinite. Diagonal 1.
    partial_correlation_ : ndarray (d, d)
        The same where K is positive definite: the partial correlations of the parent (untruncated)
        Gaussian. Diagonal 1; NaN off it where K is indefinite, which has no parent Gaussian.
    edges_ : list of Edge
        All pairs, the largest |scaled interaction| first.
        Each has, without the penalty's bias, its partial correlation (`debiased`), standard error,
        95 % interval (`lower`, `upper`), p- and q-value, and a `verdict`: "present", "absent" or
        "undecided". See docs/engine.md.
    edge_rule_ : EdgeRule
        By what pairs are `selected`: "false-discovery-rate" or "threshold".
    centrality_ : list of Centrality, or None
        Of each column its `degree`, `strength` and `expected_influence`, the last two with 95 %
        intervals; None where edges have none.
    no_uncertainty_ : str or None
        Why they have not, such as a fit that has not converged; None where they have.
    has_model_draws_ : bool
        Whether `impute_multiple` draws each table under parameters of its own.
    penalty_, penalty_kind_ : float and str, or None
        Strength and shape of the penalty that K was fitted with; None without one, as for a graph
        that "ebic" or "stability" chose.
    penalty_relaxation_ : float or None
        Of the adaptive penalty, from 0 to 1: how far its last cycles spare strong interactions that
        the others have found, as far as held-out rows gain by it, or wholly (1) with a `penalty` of
        one's own.
    penalty_path_, selection_, linear_choice_, linear_evidence_
        What was chosen, by which rule, and on what evidence.
    column_transform_ : str or list of str
        The transform of all columns, or that of each.
    transform_evidence_ : list of TransformEvidence
        With "auto" what was compared: `transform`, mean `log_density` of held-out rows,
        `standard_error` of its difference from the best of all columns alike, and `chosen`.
    stability_ : Stability or None
        With `selection="stability"`: inclusions, and how many half-samples failed and why.
    status_, message_, converged_, n_iter_, objective_path_, diagnostics_, warnings_
        How the fit went, and what a reader must know.
    objective_name_, noise_starts_
        What `objective_path_` has, and the positions in it from which noise is another, so that
        its level is not to be compared with that before.
    column_change_ : ndarray (d,) or None
        Of comparators that impute: how far the mean of each column's imputed cells moved in the
        last round or iteration, in units of the column's root mean square.
    """

    preset: Literal["default", "paper"] = "default"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("preset", self.preset, ("default", "paper"))
        if self.preset == "paper":
            self._refuse_what_the_paper_has_not()

    def _refuse_what_the_paper_has_not(self) -> None:
        for name, refused in (
            ("penalty_kind", self.penalty_kind == "l1"),
            ("penalties", self.penalties is not None),
            ("selection", self.selection != "held-out"),
            ("noise_scale", self.noise_scale != 1),
            ("device", self.device != "cpu"),
        ):
            if refused:
                raise ValueError(
                    f"`{name}={getattr(self, name)!r}` needs `preset='default'`, got 'paper'"
                )

    def _estimate(self, observations: Observations, seed: int, progress: Progress) -> FitResult:
        options = self._options()
        if self.preset == "default":
            return fit_truncated_gaussian(observations, options, seed, progress)
        refuse_zeros(observations.to_array(), self._column_names())
        if self.max_iter is None:
            options = replace(options, max_cycles=MAX_ITERATIONS)
        return fit_by_papers_recipe(observations, options, seed, progress)


@dataclass(kw_only=True, eq=False, repr=False)
class TruncatedGaussianNCE(TruncatedGaussianEstimator):
    """Truncated Gaussian network by plain NCE, missing cells filled or dropped beforehand.

    The comparator of the paper: filled cells bias the estimates more the more there are.

    Parameters
    ----------
    imputation : "mean", "zero", "noise" or "drop"
        Fill with the column's observed mean, with zero, with draws from the noise distribution of
        the column, or keep only complete rows.

    All other parameters and the attributes are those of `TruncatedGaussianVNCE`.
    """

    imputation: Literal["mean", "zero", "noise", "drop"] = "mean"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("imputation", self.imputation, tuple(Imputation))

    def _estimate(self, observations: Observations, seed: int, progress: Progress) -> FitResult:
        return fit_filled(
            observations,
            Imputation(self.imputation),
            seed,
            lambda filled: fit_truncated_gaussian(filled, self._options(), seed, progress),
        )
