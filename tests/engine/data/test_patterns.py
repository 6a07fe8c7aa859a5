import torch

from vnce_engine.data.patterns import Gaps

OBSERVED = torch.tensor(
    [
        [True, False, True],
        [True, True, True],
        [False, True, False],
        [True, False, True],
        [False, False, False],
        [True, True, False],
    ]
)


def test_rows_with_as_many_missing_cells_are_together_and_each_pattern_is_there_once():
    groups = Gaps.of(OBSERVED).groups

    assert [group.rows.tolist() for group in groups] == [[0, 3, 5], [2], [4]]
    assert [group.patterns[group.pattern].tolist() for group in groups] == [
        [[1], [1], [2]],
        [[0, 2]],
        [[0, 1, 2]],
    ]
    assert len(groups[0].patterns) == 2


def test_every_missing_cell_is_there_once():
    gaps = Gaps.of(OBSERVED)
    cells = torch.zeros_like(OBSERVED, dtype=torch.int64)
    cells.index_put_((gaps.row, gaps.column), torch.tensor(1), accumulate=True)

    assert torch.equal(cells, (~OBSERVED).long())
    assert gaps.num_cells == cells.sum()
    assert gaps.incomplete_rows.tolist() == [0, 3, 5, 2, 4]


def test_numbers_are_cut_by_group_row_and_missing_column():
    gaps = Gaps.of(OBSERVED)
    numbers = torch.stack([gaps.row, gaps.column], dim=1)

    for group, part in zip(gaps.groups, gaps.split(numbers), strict=True):
        assert torch.equal(part[..., 0], group.rows.unsqueeze(1).expand(part.shape[:2]))
        assert torch.equal(part[..., 1], group.patterns[group.pattern])


def test_a_complete_table_has_no_groups():
    gaps = Gaps.of(torch.ones(4, 2, dtype=torch.bool))

    assert (gaps.groups, gaps.num_cells) == ((), 0)
    assert not list(gaps.split(torch.zeros(0, 3)))
