import csv
from io import StringIO
from itertools import pairwise

import pytest

from worker.cli.demo_problems import DemoProblem, ring_problem, sachs_problem


def cells_of(problem: DemoProblem) -> tuple[list[str], list[list[str]]]:
    header, *rows = csv.reader(StringIO(problem.content.decode()))
    return header, rows


def test_a_quarter_of_the_protein_cells_is_empty() -> None:
    header, rows = cells_of(sachs_problem())
    assert (len(rows), len(header)) == (853, 11)
    assert sum(row.count("") for row in rows) == round(0.25 * 853 * 11)


def test_the_proteins_are_scored_against_20_pairs() -> None:
    problem = sachs_problem()
    assert len(problem.truth) == 20
    assert {name for edge in problem.truth for name in edge} <= set(cells_of(problem)[0])


def test_the_ring_has_every_neighbour_and_no_other_pair() -> None:
    problem = ring_problem()
    header, rows = cells_of(problem)
    assert (len(rows), len(header)) == (1000, 20)
    assert sum(row.count("") for row in rows) == 6000
    assert problem.truth == {*pairwise(header), ("x01", "x20")}


@pytest.mark.parametrize("make", [sachs_problem, ring_problem])
def test_a_problem_is_the_same_every_time(make: type[DemoProblem]) -> None:
    assert make() == make()
