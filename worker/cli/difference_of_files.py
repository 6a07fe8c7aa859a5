"""Whether the networks of tables in two files differ: both fitted here, on this machine's cores."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.datasets.options import ReadLimits
from service.http.problems import ProblemCode, ProblemError
from service.jobs.difference_planning import SAME_TABLE, Scale, no_errors
from service.jobs.estimated_networks import is_by_half_samples
from service.jobs.specs.difference import DifferenceSpec
from service.results.outcome import Outcome
from service.results.schemas import EstimationResult
from vnce_engine.runtime.reports import FitStep
from worker.cli.client import JsonObject
from worker.cli.exit_codes import ExitCode
from worker.cli.fitting import estimation_of, job_of, network_with_errors
from worker.cli.flag_names import in_flags
from worker.cli.local_difference import FOLDERS, STAGE, compare_sides, spec_of_files
from worker.cli.local_result import result_files
from worker.cli.local_table import LocalTable
from worker.cli.printing import ERR, OUT, print_json
from worker.cli.progress import Show, board
from worker.cli.result_folder import say_written, write_result
from worker.cli.result_summary import print_result
from worker.jobs.difference_sides import two_results
from worker.jobs.estimated import Estimated
from worker.jobs.estimation import EstimationRequest, estimate, estimate_files
from worker.jobs.failures import JobFailedError


@dataclass(frozen=True)
class _Network:
    """A table in a file, what is asked of it, and what came of that."""

    path: Path
    local: LocalTable
    request: EstimationRequest
    outcome: Outcome

    @property
    def result(self) -> EstimationResult:
        assert isinstance(self.outcome.document, EstimationResult)
        return self.outcome.document

    @property
    def estimated(self) -> Estimated:
        return Estimated.of(self.request.spec, self.result, self.outcome.edges)

    @property
    def scale(self) -> Scale:
        uncertainty = self.result.uncertainty
        debiased = None if uncertainty is None else uncertainty.linear
        linear = debiased or self.result.linear.choice
        return Scale.of(self.request.spec, linear, self.result.transform)


def difference_of_files(
    paths: tuple[Path, Path],
    out: Path | None,
    reading: JsonObject,
    request: JsonObject,
    asked: JsonObject,
    limits: ReadLimits,
    *,
    as_json: bool,
) -> ExitCode:
    """Read and fit both, compare, write every file below `out`, print a summary (or the result).

    `request` is of an estimation, `asked` of the difference. Raises `ProblemError` and
    `JobFailedError` as `fit_file` does, with the file's name, and where the networks cannot be
    compared.
    """
    tables = [_read(path, reading, request, limits) for path in paths]
    specs = [estimation.spec for _, estimation in tables]
    difference = spec_of_files(specs[0], asked)
    _refuse_before_fits(paths, tables, difference)
    with board(ERR) as add:
        networks = [
            _fitted(path, *table, add(path.name), with_files=out is not None)
            for path, table in zip(paths, tables, strict=True)
        ]
        _refuse_incomparable(networks)
        first, second = networks
        sides = two_results(
            first.estimated, first.request.table, second.estimated, second.request.table
        )
        show = add(STAGE)
        outcome = compare_sides(
            difference, sides, lambda step: show(step.stage, step.fraction, None)
        )
    document, files = result_files(outcome)
    if out is not None:
        write_result(out, files)
        for folder, network in zip(FOLDERS, networks, strict=True):
            write_result(out / folder, result_files(network.outcome)[1])
    if as_json:
        print_json(document)
        return ExitCode.OK
    for network in networks:
        for change in network.local.dataset.summary.changes:
            told = f"{network.path}: reading: {in_flags(change.message)}"
            OUT.print(told, markup=False, highlight=False)
    print_result(OUT, document)
    if out is not None:
        say_written(OUT, out, files)
        OUT.print(f"The networks' own results: {' and '.join(FOLDERS)} there.", highlight=False)
    return ExitCode.OK


def _read(
    path: Path, reading: JsonObject, request: JsonObject, limits: ReadLimits
) -> tuple[LocalTable, EstimationRequest]:
    with _told_of(path):
        local = LocalTable.read(path, reading, request, limits)
        estimation = estimation_of(job_of(request), local, None)
    network_with_errors(estimation, "--estimator")
    assert isinstance(estimation, EstimationRequest)
    return local, estimation


def _fitted(
    path: Path, local: LocalTable, request: EstimationRequest, show: Show, *, with_files: bool
) -> _Network:
    def on_step(step: FitStep) -> None:
        show(step.stage, step.fraction, step.objective)

    with _told_of(path):
        if with_files:
            return _Network(path, local, request, estimate(request, on_step))
        fitted, document, _ = estimate_files(request, on_step, ())
    return _Network(path, local, request, Outcome(document, fitted.edges, []))


def _refuse_before_fits(
    paths: tuple[Path, Path],
    tables: list[tuple[LocalTable, EstimationRequest]],
    difference: DifferenceSpec,
) -> None:
    locals_, requests = zip(*tables, strict=True)
    reason = None
    if len({local.identity.sha256 for local in locals_}) == 1:
        reason = SAME_TABLE
    elif difference.n_permutations and is_by_half_samples(requests[0].spec):
        reason = "Graphs that half-samples chose cannot be held in permutations."
    else:
        one, two = (
            Scale.of(each.spec, each.spec.model.linear, each.spec.model.transform)
            for each in requests
        )
        reason = one.reason_against(two)
    _refuse(paths, reason)


def _refuse_incomparable(networks: list[_Network]) -> None:
    for network in networks:
        uncertainty = network.result.uncertainty
        if uncertainty is not None and uncertainty.reason is not None:
            message = no_errors(str(network.path), uncertainty.reason)
            raise ProblemError(ProblemCode.INCOMPATIBLE_MODEL, message)
    first, second = networks
    _refuse((first.path, second.path), first.scale.reason_against(second.scale))


def _refuse(paths: tuple[Path, Path], reason: str | None) -> None:
    if reason is not None:
        told = f"{paths[0]} and {paths[1]}: {reason}"
        raise ProblemError(ProblemCode.INCOMPATIBLE_MODEL, told)


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Have a refusal say which file it is about."""
    try:
        yield
    except ProblemError as error:
        told = f"{path}: {error.detail}"
        raise ProblemError(error.code, told, errors=error.errors) from error
    except JobFailedError as error:
        problem = error.problem
        told = f"{path}: {problem.detail}"
        raise JobFailedError(problem.model_copy(update={"detail": told})) from error
