import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from vnce_engine.inference.metrics import (
    EdgeScore,
    edge_roc,
    edge_scores,
    partial_correlation,
    scaled_interaction,
)


def symmetric(d, pairs):
    """Return the symmetric (d, d) matrix with the given upper-triangle entries, row by row."""
    matrix = np.zeros((d, d), dtype=np.asarray(pairs).dtype)
    matrix[np.triu_indices(d, k=1)] = pairs
    return matrix + matrix.T if matrix.dtype != bool else matrix | matrix.T


def test_a_hand_worked_curve():
    # Pairs 01 02 03 12 13 23; from the top: edge .9, other .8, edge .7, then .1 to .3 not.
    scores = symmetric(4, [0.9, 0.8, 0.7, 0.1, 0.2, 0.3])
    truth = symmetric(4, [True, False, True, False, False, False])

    roc = edge_roc(scores, truth)

    assert roc.thresholds == (None, 0.9, 0.8, 0.7, 0.3, 0.2, 0.1)
    assert roc.tpr == (0, 0.5, 0.5, 1, 1, 1, 1)
    assert roc.fpr == (0, 0, 0.25, 0.25, 0.5, 0.75, 1)
    # One of the eight (edge, other) comparisons is lost: .7 against .8.
    assert roc.auc == pytest.approx(7 / 8)
    assert roc.average_precision == pytest.approx((1 + 2 / 3) / 2)
    assert (roc.num_pairs, roc.num_edges, roc.reason) == (6, 2, None)


def test_agrees_with_scikit_learn_on_the_list_of_pairs():
    rng = np.random.default_rng(0)
    values, edges = rng.integers(0, 20, size=190).astype(float), rng.random(190) < 0.2

    roc = edge_roc(symmetric(20, values), symmetric(20, edges))

    assert roc.auc == pytest.approx(roc_auc_score(edges, values), rel=1e-14)
    assert roc.average_precision == pytest.approx(average_precision_score(edges, values), rel=1e-14)
    assert np.trapezoid(roc.tpr, roc.fpr) == pytest.approx(roc.auc, rel=1e-12)


def test_equal_scores_give_one_half():
    truth = symmetric(4, [True, False, True, False, False, False])

    assert edge_roc(np.ones((4, 4)), truth).auc == 0.5


def test_the_diagonals_never_count():
    scores = symmetric(3, [3.0, 2.0, 1.0])
    truth = symmetric(3, [True, False, False])
    expected = edge_roc(scores, truth)

    np.fill_diagonal(scores, [math.nan, -9.0, 9.0])
    np.fill_diagonal(truth, [True, False, True])

    assert edge_roc(scores, truth) == expected
    assert expected.auc == 1.0


@pytest.mark.parametrize(
    ("edges", "average_precision", "word"),
    [([False] * 3, None, "no pair"), ([True] * 3, 1.0, "every pair")],
)
def test_a_truth_of_one_class_has_no_area_but_a_reason(edges, average_precision, word):
    roc = edge_roc(symmetric(3, [3.0, 2.0, 1.0]), symmetric(3, edges))

    assert roc.auc is None
    assert word in roc.reason
    assert roc.average_precision == average_precision
    assert (roc.fpr, roc.tpr, roc.thresholds) == ((), (), ())
    assert roc.num_edges == sum(edges)


def test_every_number_of_the_curve_is_finite_or_none():
    roc = edge_roc(symmetric(3, [3.0, 2.0, 1.0]), symmetric(3, [True, False, False]))

    assert all(math.isfinite(value) for value in (*roc.fpr, *roc.tpr, *roc.thresholds[1:]))
    assert all(type(value) is float for value in (*roc.fpr, *roc.tpr, *roc.thresholds[1:]))


def test_scaled_interactions_of_a_hand_worked_matrix():
    precision = np.array([[4.0, -1.0, 0.0], [-1.0, 1.0, 0.6], [0.0, 0.6, 9.0]])

    expected = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, -0.2], [0.0, -0.2, 1.0]])
    assert scaled_interaction(precision) == pytest.approx(expected, abs=1e-15)


def test_scaled_interactions_do_not_depend_on_the_columns_units():
    rng = np.random.default_rng(0)
    precision = np.cov(rng.normal(size=(4, 50)))
    scale = np.array([1e-100, 1.0, 1e100, 1e90])

    scaled = precision * scale * scale[:, None]

    assert scaled_interaction(scaled) == pytest.approx(scaled_interaction(precision), rel=1e-12)


def test_scaled_interactions_need_a_positive_diagonal():
    with pytest.raises(ValueError, match="positive diagonal, got -1"):
        scaled_interaction(np.diag([1.0, -1.0]))


def test_an_indefinite_precision_has_scaled_interactions_and_no_partial_correlation():
    interaction = scaled_interaction(np.array([[1.0, 4.08], [4.08, 1.0]]))
    assert interaction[0, 1] == -4.08
    found = partial_correlation(interaction, is_positive_definite=False)
    np.testing.assert_array_equal(found, [[1.0, np.nan], [np.nan, 1.0]])


def test_partial_correlations_of_a_nearly_singular_precision_do_not_pass_1_by_rounding():
    beyond = np.nextafter(1.0, 2.0)
    interaction = np.array([[1.0, beyond], [beyond, 1.0]])
    assert (partial_correlation(interaction, is_positive_definite=True) == 1.0).all()


@pytest.mark.parametrize(
    ("score", "first"),
    [
        (EdgeScore.ABS_PRECISION, (0, 1)),
        (EdgeScore.PRECISION, (0, 2)),
        (EdgeScore.ABS_SCALED_INTERACTION, (1, 2)),
        (EdgeScore.SCALED_INTERACTION, (0, 1)),
    ],
)
def test_each_score_ranks_its_own_pair_first(score, first):
    # K_01 = -3 is the largest in size, K_02 = 2 the largest; K_12 = 1 joins small diagonals, so
    # that its scaled interaction, -.98, is the largest in size and +.3 of K_01 the largest.
    precision = np.array([[100.0, -3.0, 2.0], [-3.0, 1.0, 1.0], [2.0, 1.0, 1.04]])
    scores = edge_scores(precision, score)

    pairs = [(0, 1), (0, 2), (1, 2)]

    assert max(pairs, key=lambda pair: scores[pair]) == first


def test_signed_scores_run_in_opposite_directions():
    precision = np.array([[2.0, 0.5, 0.0], [0.5, 2.0, -0.5], [0.0, -0.5, 2.0]])
    truth = symmetric(3, [True, False, False])

    assert edge_roc(edge_scores(precision, EdgeScore.PRECISION), truth).auc == 1.0
    assert edge_roc(edge_scores(precision, EdgeScore.SCALED_INTERACTION), truth).auc == 0.0


@pytest.mark.parametrize(
    ("scores", "truth", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 3), bool), "`scores` must be a square matrix"),
        (np.ones((1, 1)), np.ones((1, 1), bool), "`scores` must be a square matrix of 2 or more"),
        (np.ones((2, 2)), np.ones((3, 3), bool), r"`truth` must have the shape \(2, 2\)"),
        (np.ones((2, 2)), np.ones((2, 2)), "`truth` must be boolean"),
        (np.array([[0, math.nan], [math.nan, 0]]), np.eye(2, dtype=bool), "finite"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), np.eye(2, dtype=bool), "`scores` must be symmetric"),
        (np.ones((2, 2)), np.triu(np.ones((2, 2), bool)), "`truth` must be symmetric"),
    ],
)
def test_input_that_is_no_scored_graph_is_refused(scores, truth, message):
    with pytest.raises(ValueError, match=message):
        edge_roc(scores, truth)
