"""What cannot run is refused at submission, every reason at once and by name."""

import re
from typing import Any

import pytest

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import read_dataset
from service.http.problems import ProblemError, ProblemItem
from service.jobs import compatibility
from service.jobs.compatibility import num_parameters, reasons_against
from service.jobs.estimation_planning import resolve
from service.jobs.specs.base import MIN_ROWS
from service.jobs.specs.estimation import EstimationSpec
from service.settings import Settings

LIMITS = ReadLimits.from_settings(Settings())
# Rows that any model takes; a column is added to them by each test.
GOOD = [f"{1 + row},{5 + row % 3}" for row in range(12)]


def judge_table(lines: list[str], **request: Any) -> list[ProblemItem]:
    """Return the reasons against fitting the CSV table of these lines."""
    summary = read_dataset("\n".join(lines).encode(), ReadOptions(), LIMITS).summary
    body = EstimationSpec.model_validate({"kind": "estimation", "dataset_id": "ds_1", **request})
    return reasons_against(body, summary, summary.columns)


def judge(extra: list[Any], **request: Any) -> list[ProblemItem]:
    """Return the reasons against a table of two good columns and `extra`, a third."""
    rows = [f"{good},{cell}" for good, cell in zip(GOOD, extra, strict=True)]
    return judge_table(["a,b,c", *rows], **request)


def with_cells(*cells: Any) -> list[Any]:
    """Return twelve cells that begin with `cells`."""
    return [*cells, *range(1, 13 - len(cells))]


def test_good_table_is_accepted() -> None:
    assert judge(with_cells()) == []


def test_gaps_are_accepted() -> None:
    assert judge(with_cells("", "NA")) == []


def test_constant_column_is_named() -> None:
    [reason] = judge([3.0] * 11 + [""])
    assert reason.column == "c"
    assert "same" in reason.message


def test_column_without_a_number_is_named() -> None:
    [reason] = judge([""] * 12)
    assert reason.column == "c"
    assert "No cell holds a number" in reason.message


def test_a_column_with_few_numbers_is_counted_and_the_option_named() -> None:
    [reason] = judge([1, 2, 3, 4, 5] + [""] * 7)
    assert (reason.column, reason.count, reason.pointer) == ("c", 5, "/min_observed")
    assert "Fewer than 6 cells" in reason.message
    assert judge([1, 2, 3, 4, 5] + [""] * 7, min_observed=5) == []
    assert [reason.column for reason in judge(with_cells(), min_observed=13)] == ["a", "b", "c"]


def test_more_completed_tables_than_are_written_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compatibility, "MOST_DRAWN_CELLS", 2 * 12 * 3)
    assert judge(with_cells(), imputations=2) == []
    [reason] = judge(with_cells(), imputations=3)
    assert reason.pointer == "/imputations"
    assert "3 completed tables have 108 cells" in reason.message


def test_complete_columns_of_the_smallest_table_are_enough() -> None:
    assert judge_table(["a,b", *GOOD[:MIN_ROWS]]) == []


def test_negative_values_are_counted() -> None:
    [reason] = judge(with_cells(-1, -0.5))
    assert (reason.column, reason.count) == ("c", 2)


@pytest.mark.parametrize(
    ("transform", "are_taken"),
    [("none", True), ("rank-normal", True), ("auto", True), ("sqrt", False), ("log1p", False)],
)
def test_transforms_of_the_whole_line_take_negative_values(transform: str, are_taken: bool) -> None:
    model = {"kind": "gaussian", "transform": transform}
    reasons = judge(with_cells(-1, -0.5), model=model)
    assert [reason.pointer for reason in reasons] == ([] if are_taken else ["/model/transform"])


@pytest.mark.parametrize("cell", ["<0.5", ">100", "ND"])
def test_cells_that_hold_a_limit_are_counted_and_refused(cell: str) -> None:
    [reason] = judge(with_cells(cell, cell, cell))
    assert (reason.column, reason.count) == ("c", 3)


@pytest.mark.parametrize("cell", ["<0.5", ">100", "ND"])
def test_cells_that_hold_a_limit_may_be_taken_as_missing(cell: str) -> None:
    assert judge(with_cells(cell), censored="missing") == []


def test_every_reason_is_given_at_once() -> None:
    reasons = judge([-3.0] * 12, estimator={"kind": "vnce", "preset": "paper"})
    assert [reason.column for reason in reasons] == ["c", "c"]


def test_zeros_are_refused_by_the_log_normal_family_alone() -> None:
    cells = with_cells(0, 0)
    assert judge(cells) == []
    [reason] = judge(cells, estimator={"kind": "vnce", "preset": "paper"})
    assert (reason.column, reason.count) == ("c", 2)


@pytest.mark.parametrize("penalty", [None, 0.01])
def test_fit_with_little_or_no_penalty_needs_more_rows_than_parameters(
    penalty: float | None,
) -> None:
    # K has 6 free numbers, h has 3, and c is one.
    assert num_parameters(3) == 10
    estimator = {"kind": "vnce", "penalty": penalty}
    assert judge(with_cells(), estimator=estimator) == []
    ten_rows = ["a,b,c", *(f"{good},{row}" for row, good in enumerate(GOOD[:10]))]
    [reason] = judge_table(ten_rows, estimator=estimator)
    assert reason.pointer == "/estimator/penalty"
    assert judge_table(ten_rows, estimator={"kind": "vnce", "penalty": 0.03}) == []


# As many rows as K, h and c of three columns have numbers.
TEN_ROWS = ["a,b,c", *(f"{good},{1 + row}" for row, good in enumerate(GOOD[:10]))]


def test_the_papers_recipe_has_no_penalty_to_choose_so_that_auto_is_not_advised() -> None:
    estimator = {"kind": "vnce", "preset": "paper"}
    [reason] = judge_table(TEN_ROWS, estimator=estimator)
    assert reason.pointer == "/estimator/penalty"
    assert "auto" not in reason.message
    assert judge_table(TEN_ROWS, estimator={**estimator, "penalty": 0.03}) == []


@pytest.mark.parametrize("model", ["truncated-gaussian", "gaussian"])
@pytest.mark.parametrize("kind", ["vnce", "nce"])
def test_auto_is_a_choice_for_every_model_and_advised_in_place_of_no_penalty(
    model: str, kind: str
) -> None:
    request: dict[str, Any] = {"model": {"kind": model}, "estimator": {"kind": kind}}
    assert judge_table(TEN_ROWS, **request) == []
    request["estimator"] = {"kind": kind, "penalty": None}
    [reason] = judge_table(TEN_ROWS, **request)
    assert reason.pointer == "/estimator/penalty"
    assert "auto" in reason.message


@pytest.mark.parametrize(
    "choices",
    [
        {"penalty_kind": "l1", "penalties": [1.0, 0.1]},
        {"penalty_kind": "l1", "selection": "ebic"},
        {"penalty_kind": "l1", "selection": "stability"},
        {"penalty_kind": "centred-ridge"},
    ],
)
def test_a_gaussian_takes_every_penalty_and_every_way_of_choosing(choices: dict[str, Any]) -> None:
    request = {"model": {"kind": "gaussian"}, "estimator": {"kind": "vnce", **choices}}
    assert judge(with_cells(), **request) == []


@pytest.mark.parametrize(
    ("kind", "name", "value", "instead"),
    [
        ("vnce", "preset", "paper", '"default"'),
        ("nce", "imputation", "noise", '"mean", "zero" or "drop"'),
    ],
)
def test_what_a_gaussian_does_not_take_is_refused_and_what_it_takes_is_named(
    kind: str, name: str, value: str, instead: str
) -> None:
    estimator = {"kind": kind, name: value}
    [reason] = judge(with_cells(), model={"kind": "gaussian"}, estimator=estimator)
    assert reason.pointer == f"/estimator/{name}"
    assert instead in reason.message
    for word in re.findall('"(.+?)"', instead):
        assert (
            judge(with_cells(), model={"kind": "gaussian"}, estimator={**estimator, name: word})
            == []
        )


def test_strengths_to_choose_from_that_are_too_weak_are_named_by_position() -> None:
    estimator = {"kind": "vnce", "penalties": [1.0, 0.029, 0.03, 1e-6]}
    reasons = judge_table(TEN_ROWS, estimator=estimator)
    pointers = [reason.pointer for reason in reasons]
    assert pointers == ["/estimator/penalties/1", "/estimator/penalties/3"]
    assert judge(with_cells(), estimator=estimator) == []


def test_one_variable_makes_no_network() -> None:
    [reason] = judge_table(["a", *map(str, range(12))])
    assert "at least 2 variables" in reason.message


def test_rows_with_nothing_observed_do_not_count() -> None:
    [reason] = judge_table(["a,b", *GOOD[: MIN_ROWS - 1], ",", ",", ","])
    assert f"got {MIN_ROWS - 1}" in reason.message


def test_dropping_incomplete_rows_needs_complete_ones() -> None:
    drop = {"kind": "nce", "imputation": "drop"}
    assert judge(with_cells(""), estimator=drop) == []
    few = [*range(1, MIN_ROWS), *[""] * (13 - MIN_ROWS)]
    [reason] = judge(few, estimator=drop, min_observed=MIN_ROWS - 1)
    assert reason.pointer == "/estimator/imputation"


@pytest.mark.parametrize(
    ("kind", "helps"),
    [
        ("mle", "set `penalty` to 1,"),
        ("contrastive-divergence", "set `penalty` to 1,"),
        ("pseudo-likelihood", "set `penalty` to 1,"),
        ("score-matching", '`penalty_kind="ridge"`'),
        ("gaussian-em", '"ebic", "cv"'),
        ("gaussian-score-matching", '"cv" or 1'),
    ],
)
def test_a_comparator_without_a_penalty_needs_as_many_rows_as_columns(
    kind: str, helps: str
) -> None:
    model = {"kind": "gaussian" if kind.startswith("gaussian") else "truncated-gaussian"}
    header = ",".join(f"c{column}" for column in range(12))
    lines = [",".join(str((row + 1) * (j + 1) % 13) for j in range(12)) for row in range(8)]
    estimator = {"kind": kind}
    [reason] = judge_table([header, *lines], model=model, estimator=estimator)
    assert reason.pointer == "/estimator/penalty"
    assert helps in reason.message
    with_penalty = {**estimator, "penalty": 1.0}
    assert judge_table([header, *lines], model=model, estimator=with_penalty) == []


def resolved(cluster: str, **request: Any) -> EstimationSpec:
    """Return what would run on a table with a column of clusters, of constants and of gaps."""
    rows = [f"{good},{row // 3},4,{row or ''}" for row, good in enumerate(GOOD)]
    content = "\n".join(["a,b,plate,one,gap", *rows]).encode()
    summary = read_dataset(content, ReadOptions(), LIMITS).summary
    document = {"kind": "estimation", "dataset_id": "ds_1", "cluster": cluster, **request}
    return resolve(EstimationSpec.model_validate(document), summary)


def test_a_column_of_clusters_is_none_of_the_variables() -> None:
    with pytest.raises(ProblemError) as refusal:  # for the constant column, and no other
        resolved(" plate ")
    assert [item.column for item in refusal.value.errors] == ["one"]
    spec = resolved(" plate ", variables=["b", "a"])
    assert (spec.cluster, spec.variables) == ("plate", ["a", "b"])


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("nobody", "no column of this name"),
        ("gap", "lacks values"),
        ("one", "one cluster"),
        ("a", "among the variables"),
    ],
)
def test_a_column_that_tells_no_clusters_is_refused(cluster: str, message: str) -> None:
    with pytest.raises(ProblemError) as refusal:
        resolved(cluster, variables=["a", "b"])
    [reason] = refusal.value.errors
    assert message in reason.message
    assert reason.pointer == "/cluster"
