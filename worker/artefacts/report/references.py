"""The works that a report may cite."""

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
    "Epskamp, Borsboom and Fried, 2018": "S. Epskamp, D. Borsboom and E. I. Fried (2018). "
    "Estimating psychological networks and their accuracy: a tutorial paper. Behavior Research "
    "Methods 50, 195–212.",
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
    "Welch, 1947": "B. L. Welch (1947). The generalization of 'Student's' problem when several "
    "different population variances are involved. Biometrika 34, 28–35.",
    "White, 1982": "H. White (1982). Maximum likelihood estimation of misspecified models. "
    "Econometrica 50, 1–25.",
}


def cited(text: str) -> list[str]:
    """Return the works that a text cites, in order."""
    return [work for citation, work in _REFERENCES.items() if citation in text]
