"""Resamples of an estimation, split into parts and put together."""

import csv
import io
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from service.jobs.specs.bootstrap import BootstrapSpec
from service.jobs.specs.estimation import EstimationSpec
from service.results.parts_result import PartFailureRead, PartResult
from service.results.schemas import EstimationResult
from tests.report_pages import bold_rows, parsed, text_of, verdicts_of
from tests.service.results.conftest import document
from vnce_engine.inference.resamples import Failure, Network
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.bootstrap_files import (
    RESAMPLES,
    SUBSETS,
    read_resamples,
    resamples_artefact,
)
from worker.jobs.bootstrap import put_together, split
from worker.jobs.estimated import Estimated
from worker.jobs.failures import FitCancelledError, JobFailedError
from worker.jobs.parts import FinishedParts
from worker.jobs.versions import versions

NAMES = ["a", "b", "c"]
# a - c is the strongest, a - b next, b - c is nothing.
PRECISION = [[1.0, -0.3, 0.5], [-0.3, 1.0, 0.0], [0.5, 0.0, 1.0]]
NAN = float("nan")


def estimated(**penalty: Any) -> Estimated:
    result = document()
    result["penalty"] |= penalty
    return Estimated(
        spec=EstimationSpec(dataset_id="dataset_1", variables=NAMES),
        result=EstimationResult.model_validate({**result, "names": NAMES, "precision": PRECISION}),
        network=Network(np.array([0.3, -0.5, 0.0]), np.full(3, NAN), np.array([0.0, 1.0, 0.0])),
        standard_error=np.full(3, NAN),
        num_pairwise=np.full(3, 40),
    )


def go_on(_: FitStep) -> bool:
    return False


def resample(*correlation: float, debiased: tuple[float, ...] = (NAN,) * 3) -> Network:
    selected = [float(abs(value) > 0.4) for value in correlation]
    return Network(np.array(correlation), np.array(debiased), np.array(selected))


def parts(*of_each: list[Network | Failure], num_failed: int = 0) -> FinishedParts:
    firsts = accumulate(map(len, of_each), initial=0)
    files = [
        {RESAMPLES: resamples_artefact(RESAMPLES, first, outcomes).content}
        for first, outcomes in zip(firsts, of_each, strict=False)
    ]
    result = PartResult(label="some", seconds=2.0, worker="here:1", versions=versions())
    failure = PartFailureRead(job_id="job_2", label="others", error=None)
    return FinishedParts(
        len(files) + num_failed, files, [result] * len(files), [failure] * num_failed
    )


def put(
    n_resamples: int, finished: FinishedParts, n_subsets: int = 0
) -> tuple[Any, dict[str, bytes]]:
    spec = BootstrapSpec(job_id="job_1", n_resamples=n_resamples, n_subsets=n_subsets, seed=5)
    outcome = put_together(spec, estimated(), finished, go_on)
    return outcome.document, {file.name: file.content for file in outcome.artefacts}


def test_every_resample_is_of_one_part() -> None:
    specs = split(BootstrapSpec(job_id="job_1", n_resamples=25, seed=5), go_on).parts
    numbers = [n for spec in specs for n in range(spec.first, spec.first + spec.n_resamples)]
    assert numbers == list(range(25))
    assert [spec.part for spec in specs] == [0, 1, 2]
    assert {(spec.job_id, spec.seed) for spec in specs} == {("job_1", 5)}


@pytest.mark.parametrize("number", [2, 11, 20, 21])
def test_the_last_part_has_what_is_left(number: int) -> None:
    specs = split(BootstrapSpec(job_id="job_1", n_resamples=number, seed=5), go_on).parts
    assert sum(spec.n_resamples for spec in specs) == number
    assert all(1 <= spec.n_resamples <= 10 for spec in specs)


def test_resamples_are_read_as_they_were_written() -> None:
    written = [resample(0.1, NAN, -0.3, debiased=(0.2, 0.1, NAN)), Failure("refused: too few")]
    read = read_resamples(resamples_artefact(RESAMPLES, 3, written).content)
    assert list(read) == [3, 4]
    one, failure = read.values()
    assert isinstance(one, Network)
    np.testing.assert_array_equal(one.partial_correlation, [0.1, NAN, -0.3])
    np.testing.assert_array_equal(one.debiased, [0.2, 0.1, NAN])
    np.testing.assert_array_equal(one.selected, [0.0, 0.0, 0.0])
    assert failure == written[1]


def test_pairs_come_strongest_first_each_with_its_own_numbers() -> None:
    # Pairs in the order a - b, a - c, b - c.
    first = resample(0.3, -0.5, 0.0, debiased=(0.4, -0.6, 0.1))
    second = resample(0.2, -0.3, 0.1, debiased=(0.3, -0.4, 0.3))
    found, files = put(2, parts([first], [second]))
    assert [(e.source, e.target, e.selected) for e in found.edges] == [
        ("a", "c", True),
        ("a", "b", False),
        ("b", "c", False),
    ]
    strongest = found.edges[0]
    assert strongest.inclusion == 0.5
    assert strongest.partial_correlation.mean == pytest.approx(-0.4)
    assert strongest.debiased.mean == pytest.approx(-0.5)
    assert strongest.debiased.standard_deviation == pytest.approx(0.2 / np.sqrt(2))
    assert [variable.name for variable in found.variables] == NAMES
    assert found.variables[0].strength.mean == pytest.approx(0.6 / 2)
    assert (found.n_parts, found.n_workers, found.part_seconds, found.seed) == (2, 1, 4.0, 5)
    assert (found.n_selected, found.top_kept) == (1, 1.0)
    lines = list(csv.DictReader(io.StringIO(files["bootstrap.csv"].decode())))
    assert [(line["source"], line["target"]) for line in lines] == [
        ("a", "c"),
        ("a", "b"),
        ("b", "c"),
    ]
    assert set(files) == {
        "bootstrap.csv",
        "bootstrap.parquet",
        "report.html",
        "figures/bootstrap.svg",
        "figures/bootstrap.png",
        "figures/bootstrap.pdf",
    }


def test_its_report_says_which_pairs_come_again() -> None:
    first = resample(0.3, -0.5, 0.0, debiased=(0.4, -0.6, 0.1))
    second = resample(0.2, -0.3, 0.1, debiased=(0.3, -0.4, 0.3))
    _, files = put(2, parts([first], [second]))
    root = parsed(files["report.html"].decode())
    [verdict] = verdicts_of(root)
    assert verdict == (
        "2 of 2 resamples of the rows have a network. Selected by more than half of them: 0 of 1 "
        "pair selected in the network (by 50% of them), and 0 of 2 others."
    )
    [[pair, *cells]] = bold_rows(root)
    assert (pair, cells[:3]) == ("a – c", ["yes", "50%", "-0.500"])
    said = text_of(root)
    assert root.findtext("head/title") == "Bootstrap of the network of table.csv"
    assert "as many as are selected (1): " in said
    assert "(job_1). The 4 variables, " in said
    assert "K was estimated by variational noise-contrastive estimation" in said
    assert "(Efron and Tibshirani, 1993)" in said
    assert "B. Efron and R. J. Tibshirani (1993)" in said


def test_subsets_are_parts_of_their_own() -> None:
    asked = BootstrapSpec(job_id="job_1", n_resamples=12, n_subsets=15, seed=5)
    specs = split(asked, go_on).parts
    assert [(s.part, s.are_subsets, s.first, s.n_resamples, s.label) for s in specs] == [
        (0, False, 0, 10, "resamples 1 to 10"),
        (1, False, 10, 2, "resamples 11 to 12"),
        (2, True, 0, 10, "subsets 1 to 10"),
        (3, True, 10, 5, "subsets 11 to 15"),
    ]
    with pytest.raises(ValidationError, match="one of each share"):
        BootstrapSpec(job_id="job_1", n_subsets=9)


def test_subsets_say_how_many_rows_can_be_left_out() -> None:
    """Of ten subsets the last six are the opposite, and those of a part that failed are missing."""
    whole = (0.3, -0.5, 0.0)
    subsets = [resample(*(sign * value for value in whole)) for sign in [1] * 4 + [-1] * 6]
    resampled = parts([resample(*whole), resample(*whole)])
    with_subsets = parts([resample(*whole), resample(*whole)], num_failed=1)
    with_subsets.files.append({SUBSETS: resamples_artefact(SUBSETS, 0, subsets).content})
    found, files = put(2, with_subsets, n_subsets=15)
    stability = found.stability
    assert stability.edges.mean == pytest.approx([1.0] * 4 + [-1.0] * 6)
    assert stability.n_requested == [2] * 5 + [1] * 5
    assert stability.n_ok == [1] * 10
    assert stability.failures == {"part-failed": 5}
    # Each of the first five shares lacks one of its two subsets.
    assert stability.edges.agreeing == [0.5] * 4 + [0.0] * 6
    assert stability.edges.coefficient == 0.0
    lines = list(csv.DictReader(io.StringIO(files["stability.csv"].decode())))
    assert (lines[0]["dropped"], lines[0]["edges_agreeing"]) == ("0.05", "0.5")
    assert "figures/stability.svg" in files
    said = text_of(parsed(files["report.html"].decode()))
    assert "rows that can be left out: partial correlations 0%, strength 0%" in said
    assert "5 of 15 subsets failed: part-failed." in said
    assert "S. Epskamp, D. Borsboom and E. I. Fried (2018)" in said
    assert put(2, resampled)[0].stability is None


def test_a_report_of_too_few_resamples_says_so() -> None:
    _, files = put(9, parts([resample(0.3, -0.5, 0.0)], num_failed=1))
    root = parsed(files["report.html"].decode())
    [verdict] = verdicts_of(root)
    assert verdict.startswith("1 of 9 resamples have a network, fewer than 50%")
    assert "8 of 9 resamples failed: part-failed." in text_of(root)


def test_what_is_not_known_is_null_and_the_picture_does_without() -> None:
    found, files = put(3, parts([resample(0.3, -0.5, 0.0), resample(0.2, -0.4, 0.1)], num_failed=1))
    assert found.resample_failures == {"part-failed": 1}
    assert (found.n_ok, found.n_failed, found.n_succeeded, found.n_parts) == (2, 1, 1, 2)
    assert found.reason is None
    spread = found.edges[0].debiased
    assert spread.model_dump() == {
        "mean": None,
        "standard_deviation": None,
        "lower": None,
        "upper": None,
        "n": 0,
    }
    line = next(csv.DictReader(io.StringIO(files["bootstrap.csv"].decode())))
    assert (line["debiased_mean"], line["debiased_n"]) == ("", "0")
    assert b"as estimated" in files["figures/bootstrap.svg"]
    assert b"without the penalty" not in files["figures/bootstrap.svg"]


@pytest.mark.slow
def test_where_most_have_failed_no_figures_are_given() -> None:
    failed = [Failure("max_iterations"), Failure("max_iterations")]
    found, _ = put(3, parts([resample(0.3, -0.5, 0.0), *failed]))
    assert found.resample_failures == {"max_iterations": 2}
    assert "1 of 3 resamples have a network" in found.reason
    assert {edge.inclusion for edge in found.edges} == {None}
    assert found.rank_correlation is None


def test_without_any_part_the_job_fails() -> None:
    with pytest.raises(JobFailedError, match="None of 2 parts has a result"):
        put(3, parts(num_failed=2))


def test_a_cancelled_bootstrap_is_not_put_together() -> None:
    spec = BootstrapSpec(job_id="job_1", n_resamples=2, seed=5)
    with pytest.raises(FitCancelledError):
        put_together(spec, estimated(), parts([resample(0.1, 0.2, 0.3)]), lambda _: True)


def test_choices_are_those_of_the_results_document() -> None:
    choices = estimated(strength=0.37, fitted_kind="adaptive", relaxation=0.25).choices
    assert (choices.penalty, choices.penalty_kind, choices.relaxation) == (0.37, "adaptive", 0.25)
    assert (choices.linear, choices.graph_strength, choices.converged) == ("zero", None, True)
    assert choices.column_transform == "none"
    step = {"kind": "l1", "strength": 0.2, "criterion": 1.0, "standard_error": None, "n_edges": 2}
    path = [{**step, "chosen": False}, {**step, "strength": 0.1, "chosen": True}]
    assert estimated(strength=None, fitted_kind=None, path=path).choices.graph_strength == 0.1
