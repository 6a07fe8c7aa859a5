"""Warnings of one kind are one line, and none is lost in it."""

from worker.cli.printing import one_a_kind


def remark(code: str, message: str, *columns: str) -> dict[str, object]:
    return {"code": code, "message": message, "columns": list(columns)}


def test_of_several_of_a_kind_the_first_is_told_and_the_columns_of_the_others() -> None:
    remarks = [
        remark("outliers", "2 outliers in a.", "a"),
        remark("missing", "Cells are missing."),
        remark("outliers", "1 outlier in b.", "b"),
        remark("outliers", "9 outliers in c.", "c"),
    ]
    assert list(one_a_kind(remarks)) == [
        ("outliers", "2 outliers in a; likewise b, c."),
        ("missing", "Cells are missing."),
    ]


def test_without_columns_the_others_are_counted() -> None:
    remarks = [remark("lines-skipped", "A line was skipped.")] * 3
    assert list(one_a_kind(remarks)) == [("lines-skipped", "A line was skipped; 2 more like it.")]


def test_columns_that_a_message_does_not_name_stand_behind_it() -> None:
    [(_, line)] = one_a_kind([remark("constant", "Always the same.", "x", "y")])
    assert line == "Always the same. (x, y)"
