"""Which pairs the table of a report holds."""

import pytest

from service.results.edges import Edge
from worker.artefacts.report.page import edges_shown


@pytest.mark.parametrize(
    ("num_edges", "num_selected", "shown", "selected_shown"),
    [
        (780, 35, 60, 35),
        (780, 100, 100, 100),
        (780, 0, 60, 0),
        (780, 300, 200, 200),
        (45, 7, 45, 7),
    ],
)
def test_selected_pairs_come_first_and_others_fill_a_short_table(
    num_edges: int, num_selected: int, shown: int, selected_shown: int
) -> None:
    """Every second of the strongest is selected, as far as there are so many."""
    edges = [
        Edge("a", str(n), -1.0, 1 / (n + 1), 0.1, n % 2 == 0 and n < 2 * num_selected, 9)
        for n in range(num_edges)
    ]
    told = edges_shown(edges)
    assert len(told) == shown
    assert [edge.selected for edge in told] == [True] * selected_shown + [False] * (
        shown - selected_shown
    )
    for group in (told[:selected_shown], told[selected_shown:]):
        sizes = [edge.scaled_interaction for edge in group]
        assert sizes == sorted(sizes, reverse=True)
