import torch

from vnce_engine.data.patterns import MissingnessPatterns

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
    groups = MissingnessPatterns.of(OBSERVED).groups

    assert [group.rows.tolist() for group in groups] == [[0, 3, 5], [2], [4]]
    assert [group.patterns[group.pattern].tolist() for group in groups] == [
        [[1], [1], [2]],
        [[0, 2]],
        [[0, 1, 2]],
    ]
    assert len(groups[0].patterns) == 2


def test_every_missing_cell_is_there_once():
    missing = MissingnessPatterns.of(OBSERVED)
    cells = torch.zeros_like(OBSERVED, dtype=torch.int64)
    cells.index_put_((missing.row, missing.column), torch.tensor(1), accumulate=True)

    assert torch.equal(cells, (~OBSERVED).long())
    assert missing.num_cells == cells.sum()
    assert missing.incomplete_rows.tolist() == [0, 3, 5, 2, 4]


def test_numbers_are_cut_by_group_row_and_missing_column():
    missing = MissingnessPatterns.of(OBSERVED)
    numbers = torch.stack([missing.row, missing.column], dim=1)

    for group, part in zip(missing.groups, missing.split(numbers), strict=True):
        assert torch.equal(part[..., 0], group.rows.unsqueeze(1).expand(part.shape[:2]))
        assert torch.equal(part[..., 1], group.patterns[group.pattern])


def test_a_complete_table_has_no_groups():
    missing = MissingnessPatterns.of(torch.ones(4, 2, dtype=torch.bool))

    assert (missing.groups, missing.num_cells) == ((), 0)
    assert not list(missing.split(torch.zeros(0, 3)))
