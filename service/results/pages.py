"""What the API adds to a stored result: addresses, and pages of its edges."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, TypeAdapter

from service.db.blobs import BlobRecord
from service.http.root_path import address_of
from service.jobs.records import JobRecord
from service.jobs.result_records import ArtefactRecord, EdgeRecord, ResultRecord
from service.jobs.specs.base import STORED
from service.results.base import ResultModel
from service.results.bootstrap_result import BootstrapPartResult, BootstrapResult
from service.results.comparison_result import ComparisonPartResult, ComparisonResult
from service.results.difference_result import DifferencePartResult, DifferenceResult
from service.results.experiment_result import ExperimentPartResult, ExperimentResult
from service.results.mixture_result import MixtureResult
from service.results.schemas import EdgeRuleRead, EstimationResult
from service.results.scoring_result import ScoringResult
from service.results.simulation_result import SimulationResult
from service.results.vocabulary import EdgeScore, Verdict


class ResultLinks(ResultModel):
    """Where the parts of a result are that are no files."""

    job: str = Field(description="The job.")
    precision: str = Field(description="The interaction matrix.")
    graph: str = Field(description="The ranked pairs.")
    roc: list[str] = Field(description="ROC curves, one a score; empty without a true graph.")


class FileRead(ResultModel):
    """A file of a result."""

    name: str = Field(description="Its name; unique within the result.")
    media_type: str = Field(description="What it is.")
    size: int = Field(ge=0, description="Its size in bytes.")
    sha256: str = Field(description="SHA-256 of its bytes, in hexadecimal.")
    address: str = Field(description="Where it is downloaded.")


class EstimationResultRead(EstimationResult):
    """The result of an estimation."""

    job_id: str = Field(description="The job that made it.")
    links: ResultLinks = Field(description="Where its parts are.")
    files: list[FileRead] = Field(description="Its files.")


class MixtureResultRead(MixtureResult):
    """The result of an estimation of the mixture."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(
        description="Its files: every value's component, the objective's path, pictures."
    )


class SimulationResultRead(SimulationResult):
    """The result of a simulation."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(description="Its files: the true K.")


class ScoringResultRead(ScoringResult):
    """The result of a scoring."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(description="Its files: ROC curves and their picture.")


class ExperimentResultRead(ExperimentResult):
    """The result of an experiment."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(description="Its files: data, tables and pictures.")


class ExperimentPartResultRead(ExperimentPartResult):
    """The result of one part of an experiment."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(description="Its files: the rows of data.")


class BootstrapResultRead(BootstrapResult):
    """The result of a bootstrap."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(description="Its files: a line each pair, and the picture.")


class BootstrapPartResultRead(BootstrapPartResult):
    """The result of one part of a bootstrap."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(description="Its files: the resamples.")


class ComparisonResultRead(ComparisonResult):
    """The result of a comparison."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(
        description="Its files: a line each specification, a line each pair, and the picture."
    )


class ComparisonPartResultRead(ComparisonPartResult):
    """The result of one part of a comparison."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(description="Its files: densities of rows, and pairs.")


class DifferenceResultRead(DifferenceResult):
    """The result of a difference."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(description="Its files: a line each pair, and the picture.")


class DifferencePartResultRead(DifferencePartResult):
    """The result of one part of a difference."""

    job_id: str = Field(description="The job that made it.")
    files: list[FileRead] = Field(description="Its files: the networks of its permutations.")


ResultRead = Annotated[
    EstimationResultRead
    | MixtureResultRead
    | SimulationResultRead
    | ScoringResultRead
    | ExperimentResultRead
    | ExperimentPartResultRead
    | BootstrapResultRead
    | BootstrapPartResultRead
    | ComparisonResultRead
    | ComparisonPartResultRead
    | DifferenceResultRead
    | DifferencePartResultRead,
    Field(discriminator="kind"),
]

_RESULT: TypeAdapter[ResultRead] = TypeAdapter(ResultRead)


class EdgeRead(ResultModel):
    """A pair of variables."""

    rank: int = Field(ge=1, description="Place by falling |scaled interaction|, from 1.")
    source: str = Field(description="The variable that comes first in the table.")
    target: str = Field(description="The other one.")
    precision: float = Field(description="K_ij, on the transformed scale, the columns' own units.")
    scaled_interaction: float = Field(
        description="-K_ij / sqrt(K_ii K_jj), free of units; beyond -1 or 1 only where K is not "
        "positive definite."
    )
    partial_correlation: float | None = Field(
        ge=-1,
        le=1,
        description="The scaled interaction as the partial correlation of the parent (untruncated) "
        "Gaussian; null where K is not positive definite: there is no parent Gaussian then.",
    )
    selected: bool = Field(description="Whether it meets the edge rule.")
    n_pairwise: int = Field(ge=0, description="Rows in which both are observed.")
    inclusion: float | None = Field(
        ge=0,
        le=1,
        description="Share of half-samples that have the edge; null without stability, and where "
        "too few say something of the pair.",
    )
    debiased: float | None = Field(
        ge=-1,
        le=1,
        description="The partial correlation without the penalty's bias. Null, as the next five, "
        "where it is not known: `uncertainty` of the result says why.",
    )
    standard_error: float | None = Field(
        ge=0,
        description="Standard error of `debiased`, over tables of as many rows and missing cells.",
    )
    lower: float | None = Field(
        ge=-1, le=1, description="Lower end of its 95 % confidence interval."
    )
    upper: float | None = Field(ge=-1, le=1, description="Its upper end.")
    p_value: float | None = Field(
        ge=0, le=1, description="Two-sided p-value of a partial correlation of zero."
    )
    q_value: float | None = Field(
        ge=0, le=1, description="Least false discovery rate at which the pair is found."
    )
    verdict: Verdict | None = Field(
        description="`present`: its q-value is at most `fdr`, and its interval not all of -1 to 1; "
        "`absent`: its q-value is not, and the whole interval is nearer to zero than the edge "
        "threshold; `undecided`: neither. Null where the estimator has no standard errors."
    )


class GraphPage(ResultModel):
    """Ranked pairs, strongest first."""

    names: list[str] = Field(description="All variables, those without an edge included.")
    edge_rule: EdgeRuleRead = Field(description="When a pair counts as an edge.")
    edges: list[EdgeRead] = Field(description="The pairs of this page.")
    next_cursor: str | None = Field(description="Pass as `cursor` for the next page; null: last.")


def describe_result(
    job: JobRecord, result: ResultRecord, files: Sequence[tuple[ArtefactRecord, BlobRecord]]
) -> ResultRead:
    """Return the stored document with the addresses of all that belongs to it."""
    document = {
        "kind": job.kind,  # documents of the first release do not name it
        **result.document,
        "job_id": job.id,
        "files": [
            FileRead(
                name=artefact.name,
                media_type=artefact.media_type,
                size=blob.size,
                sha256=blob.sha256,
                address=address_of(f"/v1/jobs/{job.id}/result/files/{artefact.name}"),
            )
            for artefact, blob in files
        ],
    }
    if document["kind"] == "estimation":
        document["links"] = links_of(job.id, has_truth=job.ground_truth is not None)
    return _RESULT.validate_python(document, extra="ignore", context=STORED)


def describe_edge(edge: EdgeRecord, *, is_positive_definite: bool) -> EdgeRead:
    """Return what the API says about a pair; `is_positive_definite` is said of its K."""
    interaction = edge.scaled_interaction
    stored = EdgeRead.model_fields.keys() - {"partial_correlation"}
    # Rounding may take that of a nearly singular K beyond 1.
    correlation = max(-1.0, min(interaction, 1.0)) if is_positive_definite else None
    fields = {name: getattr(edge, name) for name in stored}
    return EdgeRead.model_validate({**fields, "partial_correlation": correlation})


def links_of(job_id: str, *, has_truth: bool) -> ResultLinks:
    """Return the addresses of a result's parts."""
    job = address_of(f"/v1/jobs/{job_id}")
    result = f"{job}/result"
    return ResultLinks(
        job=job,
        precision=f"{result}/precision",
        graph=f"{result}/graph",
        roc=[f"{result}/roc?score={score}" for score in EdgeScore] if has_truth else [],
    )
