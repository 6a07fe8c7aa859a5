"""Scores that are undefined or easily mixed up come out as what they are."""

import numpy as np
import pytest

from vnce_engine.inference.metrics import edge_roc, scaled_interaction

SCORES = np.array([[0.0, 0.2, 0.1], [0.2, 0.0, 0.4], [0.1, 0.4, 0.0]])
PRECISION = np.array([[2.0, -0.6, 0.0], [-0.6, 1.0, 0.3], [0.0, 0.3, 1.5]])


def truth(*edges: tuple[int, int]) -> np.ndarray:
    matrix = np.zeros((3, 3), dtype=bool)
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = True
    return matrix


@pytest.mark.parametrize(
    ("edges", "average_precision", "reason"),
    [((), None, "no pair"), (((0, 1), (0, 2), (1, 2)), 1.0, "every pair")],
)
def test_area_of_one_class_is_none_with_a_reason_and_other_figures_stay(
    edges, average_precision, reason
):
    curve = edge_roc(SCORES, truth(*edges))
    assert curve.auc is None
    assert reason in curve.reason
    assert curve.average_precision == average_precision
    assert (curve.num_pairs, curve.num_edges) == (3, len(edges))


def test_ties_alone_give_one_half():
    assert edge_roc(np.full((3, 3), 0.3), truth((0, 1))).auc == 0.5


def test_perfect_ranking_gives_one():
    scores = np.array([[0.0, 0.9, 0.1], [0.9, 0.0, 0.4], [0.1, 0.4, 0.0]])
    assert edge_roc(scores, truth((0, 1), (1, 2))).auc == 1.0


def test_diagonals_count_for_nothing():
    loud = SCORES + 9 * np.eye(3)
    looped = truth((0, 1)) | np.eye(3, dtype=bool)
    assert edge_roc(loud, looped) == edge_roc(SCORES, truth((0, 1)))


def test_scaled_interaction_has_the_sign_and_the_zeros_of_the_precision():
    found = scaled_interaction(PRECISION)
    # -K_ij / sqrt(K_ii K_jj): 0.6 / sqrt(2) and -0.3 / sqrt(1.5).
    expected = np.eye(3)
    expected[0, 1] = expected[1, 0] = 0.6 / np.sqrt(2)
    expected[1, 2] = expected[2, 1] = -0.3 / np.sqrt(1.5)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0)
    assert np.argwhere(np.triu(found, 1)).tolist() == [[0, 1], [1, 2]]


def test_covariance_has_no_zero_where_the_precision_has_one():
    covariance = np.linalg.inv(PRECISION)
    # Cofactors over the determinant 2 (1.5 - 0.09) - 0.54 = 2.28.
    cofactors = np.array([[1.41, 0.9, -0.18], [0.9, 3.0, -0.6], [-0.18, -0.6, 1.64]])
    np.testing.assert_allclose(covariance, cofactors / 2.28, rtol=1e-14)
    np.testing.assert_allclose(
        scaled_interaction(np.linalg.inv(covariance)),
        scaled_interaction(PRECISION),
        atol=1e-14,
    )
