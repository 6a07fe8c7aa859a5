"""What the API adds to a stored result: addresses, and pages of its edges."""

from pydantic import Field

from service.results.records import EdgeRecord
from service.results.schemas import EdgeRuleRead, EstimationResult, ResultModel
from service.results.vocabulary import EdgeScore, Figure


class ResultLinks(ResultModel):
    """Where the parts of a result are."""

    job: str = Field(description="The job.")
    precision: str = Field(description="The interaction matrix.")
    partial_correlations: str = Field(description="The matrix of partial correlations.")
    imputations: str = Field(description="The completed table.")
    graph: str = Field(description="The ranked pairs.")
    objective: str = Field(description="The objective at every iteration, as CSV.")
    roc: list[str] = Field(description="ROC curves, one a score; empty without a true graph.")
    figures: list[str] = Field(description="Pictures, SVG.")


class ResultRead(EstimationResult):
    """The result of an estimation."""

    job_id: str = Field(description="The job that made it.")
    links: ResultLinks = Field(description="Where its parts are.")


class EdgeRead(ResultModel):
    """A pair of variables."""

    rank: int = Field(ge=1, description="Place by falling absolute partial correlation, from 1.")
    source: str = Field(description="The variable that comes first in the table.")
    target: str = Field(description="The other one.")
    precision: float = Field(description="K_ij, on the transformed scale, the columns' own units.")
    partial_correlation: float = Field(
        description="-K_ij / sqrt(K_ii K_jj); a partial correlation of the parent (untruncated) "
        "Gaussian where K is positive definite."
    )
    selected: bool = Field(description="Whether it meets the edge rule.")
    n_pairwise: int = Field(ge=0, description="Rows in which both are observed.")


class GraphPage(ResultModel):
    """Ranked pairs, strongest first."""

    names: list[str] = Field(description="All variables, those without an edge included.")
    edge_rule: EdgeRuleRead = Field(description="When a pair counts as an edge.")
    edges: list[EdgeRead] = Field(description="The pairs of this page.")
    next_cursor: str | None = Field(description="Pass as `cursor` for the next page; null: last.")


def describe_edge(edge: EdgeRecord) -> EdgeRead:
    """Return what the API says about a pair."""
    return EdgeRead(
        rank=edge.rank,
        source=edge.source,
        target=edge.target,
        precision=edge.precision,
        partial_correlation=edge.partial_correlation,
        selected=edge.selected,
        n_pairwise=edge.n_pairwise,
    )


def links_of(job_id: str, *, has_truth: bool) -> ResultLinks:
    """Return the addresses of a result's parts."""
    job = f"/v1/jobs/{job_id}"
    result = f"{job}/result"
    figures = [figure for figure in Figure if has_truth or figure is not Figure.ROC]
    return ResultLinks(
        job=job,
        precision=f"{result}/precision",
        partial_correlations=f"{result}/partial-correlations",
        imputations=f"{result}/imputations",
        graph=f"{result}/graph",
        objective=f"{result}/objective/content",
        roc=[f"{result}/roc?score={score}" for score in EdgeScore] if has_truth else [],
        figures=[f"{result}/figures/{figure}.svg" for figure in figures],
    )
