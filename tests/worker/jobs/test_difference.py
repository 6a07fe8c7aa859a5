"""Permutations of two tables, split into parts and put together."""

import csv
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from service.jobs.specs.difference import DifferenceSpec
from service.jobs.specs.estimation import EstimationSpec
from service.results.parts_result import PartFailureRead, PartResult
from service.results.schemas import EstimationResult
from tests.report_pages import bold_rows, parsed, text_of, verdicts_of
from tests.service.results.conftest import document
from vnce_engine.inference.differences import NetworkPair
from vnce_engine.inference.resamples import Failure, Network
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.difference_files import PERMUTATIONS, permutations_artefact, read_permutations
from worker.jobs.difference import put_together, split
from worker.jobs.difference_sides import groups_of, two_results
from worker.jobs.estimated import Estimated
from worker.jobs.failures import FitCancelledError, JobFailedError
from worker.jobs.parts import FinishedParts
from worker.jobs.versions import versions

NAMES = ["a", "b", "c"]
NAN = float("nan")
RNG = np.random.default_rng(0)
TABLE = pa.table({name: RNG.uniform(1, 2, size=40) for name in NAMES})


def estimated(
    debiased: Any = (0.3, -0.5, 0.1), names: list[str] = NAMES, dataset: str = "table.csv"
) -> Estimated:
    result = document() | {"names": names, "precision": np.eye(3).tolist()}
    result["dataset"] |= {"name": dataset}
    values = np.array(debiased)
    return Estimated(
        spec=EstimationSpec(dataset_id="dataset_1", variables=names, seed=0),
        result=EstimationResult.model_validate(result),
        network=Network(values, values, np.ones(3)),
        standard_error=np.full(3, 0.1),
        num_pairwise=np.full(3, 40),
    )


def spec(**fields: Any) -> DifferenceSpec:
    return DifferenceSpec(**{"job_id": "job_1", "other_job_id": "job_2", "seed": 5} | fields)


def grouped(values: Any) -> pa.Table:
    return TABLE.append_column("group", pa.array(values, pa.float64()))


def pair(first: Any, second: Any) -> NetworkPair:
    errors, num_pairwise = np.full((2, 3), 0.1), np.full((2, 3), 40.0)
    return NetworkPair(np.array([first, second], dtype=float), errors, num_pairwise)


def parts(*of_each: tuple[int, list[NetworkPair | Failure]], num_failed: int = 0) -> FinishedParts:
    files = [
        {PERMUTATIONS: permutations_artefact(first, outcomes).content}
        for first, outcomes in of_each
    ]
    result = PartResult(label="some", seconds=2.0, worker="here:1", versions=versions())
    failure = PartFailureRead(job_id="job_2", label="others", error=None)
    return FinishedParts(
        len(files) + num_failed, files, [result] * len(files), [failure] * num_failed
    )


def go_on(_: FitStep) -> bool:
    return False


def results() -> Any:
    return two_results(estimated(), TABLE, estimated((0.1, 0.4, 0.1), dataset="other.csv"), TABLE)


def halves() -> Any:
    return groups_of(estimated(), grouped([0.0, 1.0] * 20), "group")


def put(request: DifferenceSpec, sides: Any, finished: FinishedParts) -> tuple[Any, Any]:
    outcome = put_together(request, sides, finished, go_on)
    return outcome.document, {file.name: file.content for file in outcome.artefacts}


@pytest.mark.parametrize(
    ("choices", "numbers", "labels"),
    [
        ({"by": "group", "other_job_id": None, "n_permutations": 0}, [0], ["the groups"]),
        (
            {"by": "group", "other_job_id": None, "n_permutations": 6},
            [*range(7)],
            ["the groups and permutations 1 to 4", "permutations 5 to 6"],
        ),
        ({"n_permutations": 0}, [], []),
        (
            {"n_permutations": 6},
            [*range(1, 7)],
            ["permutations 1 to 5", "permutation 6"],
        ),
    ],
)
def test_every_permutation_is_of_one_part(
    choices: dict[str, Any], numbers: list[int], labels: list[str]
) -> None:
    made = split(spec(**choices), results(), go_on).parts
    assert [one.label for one in made] == labels
    covered = [n for one in made for n in range(one.first, one.first + one.n_permutations)]
    assert covered == numbers
    assert [one.part for one in made] == list(range(len(made)))


def test_permutations_are_read_as_they_were_written() -> None:
    written = [pair((0.1, NAN, 0.2), (0.3, 0.4, 0.5)), Failure("refused: too few")]
    read = read_permutations(permutations_artefact(3, written).content)
    assert list(read) == [3, 4]
    first = read[3]
    assert isinstance(first, NetworkPair)
    np.testing.assert_array_equal(first.debiased, [[0.1, NAN, 0.2], [0.3, 0.4, 0.5]])
    np.testing.assert_array_equal(first.standard_error, np.full((2, 3), 0.1))
    assert read[4] == written[1]


def test_two_results_are_compared_pair_by_pair_the_largest_z_first() -> None:
    found, files = put(spec(n_permutations=0), results(), parts())
    assert [(edge.source, edge.target) for edge in found.edges] == [
        ("a", "c"),
        ("a", "b"),
        ("b", "c"),
    ]
    largest = found.edges[0]
    assert (largest.first, largest.second, largest.difference) == (-0.5, 0.4, -0.9)
    assert largest.z == pytest.approx(-0.9 / np.sqrt(0.02))
    assert (largest.differs, found.edges[2].differs, found.edges[2].z) == (True, False, 0.0)
    assert (found.first.label, found.second.label) == ("table.csv", "other.csv")
    assert (found.first.job_id, found.second.job_id) == ("job_1", "job_2")
    assert (found.n_parts, found.n_workers, found.held, found.by) == (0, 0, None, None)
    assert found.largest_z.p_value is None
    assert found.reason == "no permutations were asked for"
    lines = list(csv.DictReader(io.StringIO(files["difference.csv"].decode())))
    rows = parquet.read_table(io.BytesIO(files["difference.parquet"])).to_pylist()
    for line, row, edge in zip(lines, rows, found.edges, strict=True):
        assert row == edge.model_dump()
        assert float(line["z"]) == edge.z
    assert {name for name in files if name.startswith("figures/")} == {
        "figures/difference.svg",
        "figures/difference.png",
        "figures/difference.pdf",
    }
    assert b"larger in table.csv" in files["figures/difference.svg"]
    assert b"1 of 3 pairs found to differ" in files["figures/difference.svg"]


def test_its_report_says_which_pairs_differ() -> None:
    name = "<script>x</script>.csv"
    sides = two_results(estimated(dataset=name), TABLE, estimated((0.1, 0.4, 0.1)), TABLE)
    _, files = put(spec(n_permutations=0), sides, parts())
    root = parsed(files["report.html"].decode())
    assert list(root.iter("script")) == []
    assert root.findtext("head/title") == f"Difference: {name} minus table.csv"
    [verdict] = verdicts_of(root)
    assert verdict == (
        f"Of 3 pairs 1 found to differ between {name} and table.csv (false discovery rate 0.1). "
        "The networks as a whole have no p-value: no permutations were asked for."
    )
    [cells] = bold_rows(root)
    assert cells[:4] == ["a – c", "-0.500", "+0.400", "-0.900"]
    assert cells[-1] == "yes"
    said = text_of(root)
    for table in (f"{name} (job_1).", "table.csv (job_2)."):
        assert f"{table} The 4 variables, " in said
    assert "Y. Benjamini and Y. Hochberg (1995)" in said
    assert "van Borkulo" not in said


def test_two_long_names_of_tables_are_told_apart_where_they_are_cut() -> None:
    name = "assays of the cohort of the north.csv"
    sides = two_results(estimated(dataset=name), TABLE, estimated(dataset=name), TABLE)
    _, files = put(spec(n_permutations=0), sides, parts())
    assert b"(second)" in files["figures/difference.svg"]
    [headings] = parsed(files["report.html"].decode()).iter("thead")
    assert text_of(headings).startswith(
        "pair assays of the…v (first) assays of the c…(second) difference"
    )


def test_a_report_of_groups_says_how_they_were_compared_as_a_whole() -> None:
    request = spec(by="group", other_job_id=None, n_permutations=3)
    observed, none = pair((0.5, NAN, 0.0), (0.1, 0.0, 0.0)), pair((0.1, 0.2, 0.0), (0.1, 0.2, 0.0))
    _, files = put(request, halves(), parts((0, [observed, none, none, Failure("too few.")])))
    root = parsed(files["report.html"].decode())
    [verdict] = verdicts_of(root)
    whole = "as a whole differ with p = 0.33 by the largest |z| and p = 0.33 by the sum of z²."
    assert whole in verdict
    said = text_of(root)
    for sentence in (
        "group = 0: 20 rows; group = 1: 20 rows.",
        "Without a standard error in one of the networks: 1 pair.",
        "1 of 3 permutations failed: too few.",
        "from 2 permutations of the rows (van Borkulo et al., 2022)",
    ):
        assert sentence in said


def test_variables_in_another_order_are_matched_by_name() -> None:
    # Pairs c - b, c - a, b - a.
    other = estimated((0.1, 0.4, 0.1), names=["c", "b", "a"])
    sides = two_results(estimated((0.1, 0.4, 0.1)), TABLE, other, TABLE)
    found, _ = put(spec(n_permutations=0), sides, parts())
    # a - c is .4 in both; a - b and b - c are .1.
    assert {edge.difference for edge in found.edges} == {0.0}
    np.testing.assert_array_equal(sides.second.table, sides.first.table)
    # Two tables of one name are told apart.
    assert (found.first.label, found.second.label) == (
        "table.csv (first)",
        "table.csv (second)",
    )


def test_groups_are_compared_as_their_own_part_has_found_them() -> None:
    sides = groups_of(estimated(), grouped([None, 2.0] + [0.5, 2.0] * 19), "group")
    assert (sides.first.label, sides.second.label) == ("group = 0.5", "group = 2")
    assert (len(sides.first.table), len(sides.second.table), sides.num_unlabelled) == (19, 20, 1)
    request = spec(by="group", other_job_id=None, n_permutations=3)
    observed, none = pair((0.5, 0.0, 0.0), (0.1, 0.0, 0.0)), pair((0.1, 0.2, 0.0), (0.1, 0.2, 0.0))
    found, _ = put(request, sides, parts((2, [observed, none]), (0, [observed, none])))
    assert (found.by, found.n_unlabelled, found.n_ok) == ("group", 1, 3)
    assert found.largest_z.statistic == pytest.approx(0.4 / np.sqrt(0.02))
    assert found.largest_z.p_value == found.sum_of_squares.p_value == (1 + 1) / 4
    assert found.held.penalty == 0.3


def test_what_is_not_known_is_null_and_the_picture_does_without() -> None:
    request = spec(by="group", other_job_id=None, n_permutations=2)
    observed = pair((0.5, NAN, 0.0), (0.1, 0.0, 0.0))
    found, files = put(request, halves(), parts((0, [observed]), num_failed=1))
    assert found.edges[-1].model_dump() == {
        "source": "a",
        "target": "c",
        "first": None,
        "second": 0.0,
        **dict.fromkeys(
            ("difference", "lower", "upper", "z", "p_value", "q_value"),
        ),
        "standard_error": pytest.approx(np.sqrt(0.02)),
        "differs": False,
    }
    assert found.permutation_failures == {"part-failed": 2}
    assert (found.n_ok, found.n_failed, found.largest_z.p_value) == (0, 2, None)
    assert "0 of 2 permutations" in found.reason
    assert b"1 without standard errors" in files["figures/difference.svg"]
    unknown = pair((NAN,) * 3, (NAN,) * 3)
    found, files = put(request, halves(), parts((0, [unknown])))
    assert (found.largest_z.statistic, found.n_differing) == (None, 0)
    assert b"3 without standard errors" in files["figures/difference.svg"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0, 3.0, 4.0] * 10, r"group has 4 different values \(1, 2, 3, 4\); groups need"),
        ([1.0] * 39 + [None], r"group has 1 different value \(1\); groups"),
        ([None] * 40, "group has 0 different values"),
        ([1e300, -1e-300, 0.25] * 13 + [7.0], r"\(-1e-300, 0.25, 7, 1e\+300\)"),
        ([1.0] * 35 + [2.5] * 5, "group = 2.5, 5 rows: a group must have at least 6 rows"),
        (["no", "yes", "perhaps", None] * 10, r"3 different values \(no, perhaps, yes\)"),
        (["case"] * 35 + ["control"] * 5, "group = control, 5 rows: a group must have"),
    ],
)
def test_a_column_that_does_not_tell_two_groups_is_refused(values: Any, message: str) -> None:
    kind = pa.string() if isinstance(values[0], str) else pa.float64()
    table = TABLE.append_column("group", pa.array(values, kind))
    with pytest.raises(JobFailedError, match=message) as failed:
        groups_of(estimated(), table, "group")
    assert failed.value.problem.code == "incompatible-model"


def test_a_group_in_which_a_variable_is_constant_or_rare_is_refused_by_its_name() -> None:
    table = grouped([1.0] * 20 + [2.0] * 20)
    table = table.set_column(1, "b", pa.array([3.0] * 20 + [*RNG.uniform(size=20)]))
    with pytest.raises(JobFailedError, match=r"group = 1, 20 rows: Constant column .*: b\.$"):
        groups_of(estimated(), table, "group")
    cells = pa.array([1.0, 2.0, *[None] * 18, *RNG.uniform(size=20)])
    with pytest.raises(JobFailedError, match=r"20 rows: Fewer than .*set `min_observed`\.$"):
        groups_of(estimated(), table.set_column(1, "b", cells), "group")


def test_groups_without_networks_have_no_difference() -> None:
    request = spec(by="group", other_job_id=None, n_permutations=1)
    with pytest.raises(JobFailedError, match="that can be compared: it did not converge"):
        put(request, halves(), parts((0, [Failure("it did not converge"), Failure("x")])))
    with pytest.raises(JobFailedError, match="part-failed"):
        put(request, halves(), parts((1, [pair((0, 0, 0), (0, 0, 0))]), num_failed=1))
    with pytest.raises(JobFailedError, match="None of 1 parts has a result"):
        put(request, halves(), parts(num_failed=1))


def test_a_cancelled_difference_is_not_put_together() -> None:
    with pytest.raises(FitCancelledError):
        put_together(spec(n_permutations=0), results(), parts(), lambda _: True)


def test_both_sides_are_fitted_on_the_scale_of_the_first() -> None:
    sides: Any = results()
    transforms = ["none", "sqrt", "log1p"]
    one, other = sides.first.estimator(transforms), sides.second.estimator(transforms)
    assert one.column_transform == other.column_transform == transforms
    assert (one.linear, one.penalty) == ("zero", 0.3)


def test_clusters_go_with_their_rows_and_are_in_one_group() -> None:
    plate = pa.array(np.arange(40) // 4, pa.float64())
    one = estimated()
    one = replace(one, spec=one.spec.model_copy(update={"cluster": "plate"}))
    table = grouped(np.arange(40) >= 20).append_column("plate", plate)
    sides = groups_of(one, table, "group")
    assert sides.first.clusters is not None
    assert sides.second.clusters is not None
    assert sides.first.clusters.tolist() == (np.arange(20) // 4).tolist()
    assert sides.second.clusters.tolist() == (5 + np.arange(20) // 4).tolist()
    both = two_results(one, table, estimated(), TABLE)
    assert both.first.clusters is not None
    assert both.second.clusters is None
    split = grouped(np.arange(40) % 2).append_column("plate", plate)
    with pytest.raises(JobFailedError, match="group and plate: 10 of the clusters have rows in"):
        groups_of(one, split, "group")
