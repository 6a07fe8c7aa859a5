import math

import numpy as np
import pytest
import torch

from vnce_engine.data import observations as observations_module
from vnce_engine.data.observations import Observations


@pytest.fixture
def table():
    return np.array(
        [
            [1.0, math.nan, 3.0],
            [4.0, 5.0, 6.0],
            [7.0, math.nan, 9.0],
            [math.nan] * 3,
            [0.0, 1.0, 2.0],
        ]
    )


def test_nan_becomes_a_zero_and_an_unobserved_cell(table):
    observations = Observations.from_array(table)

    assert observations.values.dtype == torch.float64
    assert observations.observed.tolist() == (~np.isnan(table)).tolist()
    assert observations.values.tolist() == np.nan_to_num(table).tolist()
    assert (observations.num_rows, observations.num_columns) == (5, 3)


def test_the_table_comes_back_bit_for_bit(table):
    assert np.array_equal(Observations.from_array(table).to_array(), table, equal_nan=True)


def test_reading_does_not_share_memory_with_the_callers_array(table):
    observations = Observations.from_array(table)
    table[1, 1] = -1.0

    assert observations.values[1, 1] == 5.0


def test_pairs_are_counted_where_both_columns_are_observed(table):
    counts = Observations.from_array(table).num_pairwise()

    assert counts.tolist() == [[4, 2, 4], [2, 2, 2], [4, 2, 4]]


@pytest.mark.parametrize("infinity", [math.inf, -math.inf])
def test_an_infinity_is_refused_with_its_cell(table, infinity):
    table[2, 0] = infinity

    with pytest.raises(ValueError, match=f"got {infinity} in row 2, column 0"):
        Observations.from_array(table)


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2)])
def test_a_table_has_two_dimensions(shape):
    with pytest.raises(ValueError, match="must have two dimensions"):
        Observations.from_array(np.zeros(shape))


@pytest.mark.parametrize("rows_at_once", [2, 100])
def test_columns_have_the_same_figures_by_any_parts_of_the_rows(table, rows_at_once, monkeypatch):
    monkeypatch.setattr(observations_module, "PART_ROWS", rows_at_once)
    observations = Observations.from_array(table)

    mean, variance = observations.moments()

    assert observations.counts().tolist() == [4, 2, 4]
    assert mean.tolist() == pytest.approx(np.nanmean(table, axis=0).tolist())
    assert variance.tolist() == pytest.approx(np.nanvar(table, axis=0).tolist())
    assert observations.lowest().tolist() == [0.0, 1.0, 2.0]


def test_a_column_without_a_cell_has_zero_moments_and_no_lowest_value():
    observations = Observations.from_array([[math.nan, 1.0], [math.nan, 3.0]])

    assert [moment[0].item() for moment in observations.moments()] == [0.0, 0.0]
    assert observations.lowest().tolist() == [math.inf, 1.0]
