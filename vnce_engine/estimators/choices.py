"""What a fit has chosen for itself, so that other fits can be made by the same choices."""

from dataclasses import dataclass

# Values of parameters that leave a choice to the fit.
OPEN = ("auto", "cv", "ebic")


@dataclass(frozen=True)
class Choices:
    """The choices of a fit that its estimator's parameters may have left open."""

    linear: str
    """"free" or "zero": what debiased estimates have; free also where a test has found one."""
    penalty: float | None
    """Its strength; None without one."""
    penalty_kind: str | None
    relaxation: float | None
    """Of the adaptive penalty."""
    graph_strength: float | None
    """The strength whose path has the graph, where one was chosen, by eBIC or half-samples."""
    converged: bool
    """Whether the fit came to an end by its stopping rule."""
    column_transform: str | list[str] | None = None
    """The transform of all columns, or that of each; None leaves it open."""
