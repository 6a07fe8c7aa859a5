"""Models of one table, one a part, put together."""

import csv
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from service.jobs.specs.comparison import ComparisonSpec
from service.jobs.vocabulary import CensoredRule
from service.results.comparison_result import ComparedFitRead, ComparisonPartResult
from service.results.edges import Edge
from service.results.parts_result import PartFailureRead
from service.results.schemas import DatasetIdentity
from service.results.vocabulary import EdgeRule, Verdict
from tests.report_pages import parsed, text_of, verdicts_of
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.comparison_files import ComparedNetwork
from worker.jobs.comparison import PartRequest, parts_of, put_together, run_part, split
from worker.jobs.estimation import EstimationRequest
from worker.jobs.failures import FitCancelledError, JobFailedError
from worker.jobs.parts import FinishedParts
from worker.jobs.versions import versions

NAMES = ["a", "b", "c"]
NAN = float("nan")
DATASET = DatasetIdentity(id="dataset_1", name="t.csv", sha256="0" * 64)


def spec(*names: str, **choices: Any) -> ComparisonSpec:
    gaussian = {"model": {"kind": "gaussian"}, "estimator": {"kind": "gaussian-em"}}
    return ComparisonSpec.model_validate(
        {
            "dataset_id": "dataset_1",
            "variables": NAMES,
            "specifications": [{"name": name, **gaussian} for name in names],
            "seed": 5,
            **choices,
        }
    )


def go_on(_: FitStep) -> bool:
    return False


def edge(source: str, target: str, value: float, *, is_sure: bool) -> Edge:
    known = {"debiased": value, "lower": value - 0.1, "upper": value + 0.1} if is_sure else {}
    verdict = (Verdict.PRESENT if abs(value) > 0.2 else Verdict.UNDECIDED) if is_sure else None
    return Edge(source, target, -value, value, value, abs(value) > 0.2, 9, verdict=verdict, **known)


def network(*values: float, density: Any, is_sure: bool = False) -> ComparedNetwork:
    ends = [("a", "c"), ("b", "c"), ("a", "b")]  # not in the order of the table
    edges = [edge(*pair, v, is_sure=is_sure) for pair, v in zip(ends, values, strict=True)]
    return ComparedNetwork.of(np.asarray(density, dtype=float), edges, NAMES)


def put(
    request: ComparisonSpec, networks: dict[str, ComparedNetwork], *failures: PartFailureRead
) -> tuple[Any, dict[str, bytes]]:
    files = [{file.name: file.content for file in one.artefacts()} for one in networks.values()]
    results = [
        ComparisonPartResult(
            kind="comparison-part",
            label=name,
            reason="there is none" if np.isnan(one.log_densities).all() else None,
            fit=ComparedFitRead(
                converged=True,
                transform="none",
                decided_by=EdgeRule.THRESHOLD,
                n_selected=int(one.selected.sum()),
                n_unconverged_folds=1,
                monte_carlo_error=0.0,
                warnings=[],
            ),
            seconds=2.0,
            worker="here:1",
            versions=versions(),
        )
        for name, one in networks.items()
    ]
    finished = FinishedParts(len(results) + len(failures), files, [*results], [*failures])
    outcome = put_together(request, DATASET, finished, go_on)
    return outcome.document, {file.name: file.content for file in outcome.artefacts}


def lines_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_every_specification_is_a_part_with_the_same_folds_and_table() -> None:
    parts = split(spec("one", "two", n_folds=3, tag="t"), go_on).parts
    assert [(part.part, part.label, part.n_folds) for part in parts_of(spec("one", "two"))] == [
        (0, "one", 5),
        (1, "two", 5),
    ]
    assert {(part.estimation.seed, *part.estimation.variables) for part in parts} == {(5, *NAMES)}
    assert {(part.n_folds, part.tag) for part in parts} == {(3, "t")}


def test_models_are_ranked_and_paired_row_by_row() -> None:
    networks = {
        "one": network(0.5, 0.0, 0.3, density=[-1.0, -3.0, -2.0]),
        "two": network(0.4, 0.0, 0.1, density=[-0.5, -2.0, -2.0], is_sure=True),
    }
    found, files = put(spec("one", "two"), networks)
    best, other = found.models
    assert (best.name, best.position, best.behind, best.behind_standard_error) == ("two", 1, 0, 0)
    assert best.log_density == -1.5
    assert other.behind == pytest.approx(0.5)
    assert other.behind_standard_error == pytest.approx(0.5 / np.sqrt(3))
    assert other.standard_error == pytest.approx(1 / np.sqrt(3))
    assert (found.n_rows, found.n_pairs, found.n_parts, found.part_seconds) == (3, 3, 2, 4.0)
    [pair] = found.agreed
    assert (pair.source, pair.target, pair.n_selected) == ("a", "c", 2)
    [pair] = found.disputed
    assert (pair.source, pair.target, pair.n_selected) == ("a", "b", 1)
    assert [(one.model, one.selected, one.lower) for one in pair.edges] == [
        ("two", False, 0.0),
        ("one", True, None),
    ]
    assert pair.edges[0].verdict is Verdict.UNDECIDED
    assert set(files) == {
        "comparison.csv",
        "pairs.csv",
        "report.html",
        "figures/comparison.svg",
        "figures/comparison.png",
        "figures/comparison.pdf",
    }
    first = lines_of(files["comparison.csv"])[0]
    assert (first["name"], first["log_density"], first["model"]) == ("two", "-1.5", "gaussian")
    pairs = lines_of(files["pairs.csv"])
    assert [(line["source"], line["target"], line["all_agree"]) for line in pairs] == [
        ("a", "c", "true"),
        ("a", "b", "false"),
        ("b", "c", "true"),  # none selects it
    ]
    assert pairs[1]["two upper"] == "0.2"
    assert pairs[1]["one upper"] == ""


def test_its_report_says_which_model_is_best_and_where_they_differ() -> None:
    networks = {
        "one": network(0.5, 0.0, 0.3, density=[-1.0, -3.0, -2.0]),
        "two": network(0.4, 0.0, 0.1, density=[-0.5, -2.0, -2.0]),
    }
    failure = PartFailureRead(job_id="job_2", label="three", error=None)
    _, files = put(spec("one", "two", "three"), networks, failure)
    root = parsed(files["report.html"].decode())
    [verdict] = verdicts_of(root)
    assert verdict == (
        "Of 3 models two describes rows that it has not seen best: -1.5 nats per row. Next is one, "
        "behind by 0.5 ± 0.29; less than three standard errors decide nothing. Of 3 pairs all "
        "models select 1, and only some 1."
    )
    rows = [[text_of(cell) for cell in row] for row in root.iter("tr")]
    assert ["a – b", "2"] in rows
    assert ["3 three", "", "", "", "", ""] in rows
    assert "Model 3: The fit was cancelled." in text_of(root)

    assert "Model 2, one. The 3 variables, untransformed, were modelled by a Gaussian" in text_of(
        root
    )


@pytest.mark.slow
def test_equal_models_differ_by_exactly_nothing() -> None:
    values = np.random.default_rng(0).normal(size=7)
    networks = {name: network(0.5, 0.0, 0.3, density=values) for name in ("one", "two")}
    found, _ = put(spec("one", "two"), networks)
    assert [(one.behind, one.behind_standard_error) for one in found.models] == [(0.0, 0.0)] * 2


def test_without_a_density_a_model_is_still_compared_by_its_edges() -> None:
    networks = {
        "one": network(0.5, 0.0, 0.3, density=[NAN, NAN]),
        "two": network(0.4, 0.0, 0.1, density=[-0.5, -2.0]),
    }
    found, files = put(spec("one", "two"), networks)
    last = found.models[-1]
    assert (last.name, last.log_density, last.behind) == ("one", None, None)
    assert (last.reason, last.fit.n_selected) == ("there is none", 2)
    assert len(found.agreed) == len(found.disputed) == 1
    line = lines_of(files["comparison.csv"])[-1]
    assert (line["log_density"], line["reason"]) == ("", "there is none")
    assert b"no density" in files["figures/comparison.svg"]


def test_a_model_without_partial_correlations_has_no_say_in_what_all_select() -> None:
    ends = [("a", "b"), ("a", "c"), ("b", "c")]
    indefinite = [Edge(*pair, -0.9, 0.9, None, selected=False, n_pairwise=9) for pair in ends]
    networks = {
        "one": network(0.5, 0.0, 0.3, density=[-1.0, -3.0]),
        "two": network(0.4, 0.0, 0.1, density=[-0.5, -2.0]),
        "none": ComparedNetwork.of(np.array([NAN, NAN]), indefinite, NAMES),
    }
    found, files = put(spec("one", "two", "none"), networks)
    assert [(pair.source, pair.target) for pair in found.agreed] == [("a", "c")]
    assert [(pair.source, pair.target) for pair in found.disputed] == [("a", "b")]
    agree = [line["all_agree"] for line in lines_of(files["pairs.csv"])]
    assert sorted(agree) == ["false", "true", "true"]


def test_a_failed_model_is_named_with_its_cause_and_the_rest_is_compared() -> None:
    networks = {"two": network(0.4, 0.0, 0.1, density=[-0.5, -2.0])}
    failure = PartFailureRead(job_id="job_2", label="one", error=None)
    found, files = put(spec("one", "two"), networks, failure)
    assert [one.name for one in found.models] == ["two", "one"]
    assert (found.models[1].fit, found.models[1].reason) == (None, "The fit was cancelled.")
    assert (found.n_succeeded, found.n_parts) == (1, 2)
    assert lines_of(files["comparison.csv"])[1]["n_selected"] == ""
    assert b"failed" in files["figures/comparison.svg"]
    with pytest.raises(JobFailedError, match="None of 1 parts has a result"):
        put(spec("one", "two"), {}, failure)


def part(X: np.ndarray, cells: pa.Table, **choices: Any) -> PartRequest:
    table = pa.table({name: pa.array(X[:, j], from_pandas=True) for j, name in enumerate(NAMES)})
    one = parts_of(spec("one", "two", n_folds=2, **choices))[0]
    request = EstimationRequest(one.estimation, table, None, cells, None, [], DATASET)
    return PartRequest(one, request)


def test_a_part_leaves_its_densities_pairs_and_progress() -> None:
    X = np.random.default_rng(1).normal(size=(40, 3))
    X[0] = NAN
    no_cells = pa.table({"column": pa.array([], pa.string())})
    steps: list[FitStep] = []
    outcome = run_part(part(X, no_cells), steps.append)
    assert isinstance(outcome.document, ComparisonPartResult)
    files = {file.name: file.content for file in outcome.artefacts}
    read = ComparedNetwork.read(files)
    assert read.log_densities.shape == (39,)
    assert np.isfinite(read.log_densities).all()
    assert read.pairs["source"].to_pylist() == ["a", "a", "b"]
    assert outcome.document.fit.n_selected == read.selected.sum()
    assert list(dict.fromkeys(step.stage for step in steps)) == [
        "all rows",
        "fold 1 of 2",
        "fold 2 of 2",
    ]
    with pytest.raises(FitCancelledError):
        run_part(part(X, no_cells), lambda step: step.stage.startswith("fold 2"))
    censored = pa.table({"column": ["a", "a"]})
    with pytest.raises(JobFailedError, match="Cells hold a limit"):
        run_part(part(X, censored), go_on)
    told = run_part(part(X, censored, censored=CensoredRule.MISSING), go_on).document
    assert isinstance(told, ComparisonPartResult)
    assert told.fit.warnings[0].code == "censored-as-missing"


def test_a_part_holds_out_clusters_and_its_errors_are_theirs() -> None:
    X = np.random.default_rng(1).normal(size=(20, 3))[np.arange(60) // 3]
    X[0] = NAN
    request = part(X, pa.table({"column": pa.array([], pa.string())}), cluster="plate")
    plates = pa.array(np.arange(60) // 3, pa.float64())
    fit = replace(request.fit, table=request.fit.table.append_column("plate", plates))
    outcome = run_part(replace(request, fit=fit), go_on)
    read = ComparedNetwork.read({file.name: file.content for file in outcome.artefacts})
    assert read.clusters is not None
    assert read.clusters.tolist() == (np.arange(1, 60) // 3).tolist()
    networks = {"one": read, "two": replace(read, log_densities=read.log_densities - 1)}
    by_clusters, _ = put(spec("one", "two", cluster="plate"), networks)
    by_rows, _ = put(
        spec("one", "two"), {name: replace(one, clusters=None) for name, one in networks.items()}
    )
    assert (by_clusters.n_clusters, by_rows.n_clusters) == (20, None)
    # The root of three rows.
    ratio = by_clusters.models[0].standard_error / by_rows.models[0].standard_error
    assert 1.6 < ratio < 1.9
