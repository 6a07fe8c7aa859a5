import math

import numpy as np
import pytest

from vnce_engine.simulate import hub_precision, mask_completely_at_random, ring_precision


def off_diagonal(precision):
    return precision - np.diag(np.diagonal(precision))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("make", [ring_precision, hub_precision])
def test_weights_and_diagonal_follow_the_stated_rule(make, seed):
    precision = make(20, np.random.default_rng(seed))
    weights = off_diagonal(precision)

    assert np.array_equal(precision, precision.T)
    assert ((weights == 0) | ((weights >= 0.3) & (weights <= 0.5))).all()
    assert np.diagonal(precision) == pytest.approx(weights.sum(axis=1).max() + 0.01, rel=1e-14)
    assert (np.diagonal(precision) > weights.sum(axis=1)).all()
    assert np.linalg.eigvalsh(precision)[0] > 0


@pytest.mark.parametrize("d", [3, 4, 20])
def test_ring_links_every_node_to_the_next_and_the_last_to_the_first(d):
    weights = off_diagonal(ring_precision(d, np.random.default_rng(0)))

    expected = {frozenset((i, (i + 1) % d)) for i in range(d)}
    assert {frozenset(pair) for pair in np.argwhere(weights).tolist()} == expected


@pytest.mark.parametrize("seed", range(10))
def test_hub_graph_is_the_ring_with_two_nodes_linked_to_five_others(seed):
    ring = off_diagonal(ring_precision(20, np.random.default_rng(seed)))
    hub = off_diagonal(hub_precision(20, np.random.default_rng(seed)))
    extra = (hub != 0) & (ring == 0)
    degrees = extra.sum(axis=1)

    assert np.array_equal(hub[ring != 0], ring[ring != 0])
    # All extra edges meet one of two hubs, of which each has 5 links, some perhaps on the ring
    # (at most 2) or from hub to hub.
    covers = [
        (a, b)
        for a in range(20)
        for b in range(a)
        if not np.delete(np.delete(extra, [a, b], axis=0), [a, b], axis=1).any()
    ]
    assert any(3 <= degrees[a] <= 6 and 3 <= degrees[b] <= 6 for a, b in covers)
    assert 2 * 5 - 1 - 4 <= extra.sum() / 2 <= 2 * 5


def test_hubs_are_random_nodes():
    hubs = set()
    for seed in range(20):
        weights = off_diagonal(hub_precision(20, np.random.default_rng(seed)))
        hubs.add(int((weights != 0).sum(axis=1).argmax()))

    assert len(hubs) > 5


@pytest.mark.parametrize("make", [ring_precision, hub_precision])
def test_a_ring_needs_three_nodes(make):
    with pytest.raises(ValueError, match="`d` must be a whole number from 3 to 100000, got 2"):
        make(2, np.random.default_rng(0))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.333, 0.5, 0.999])
def test_exactly_the_asked_number_of_cells_is_blanked_in_a_copy(fraction, order):
    X = np.asarray(np.random.default_rng(0).random((30, 7)), order=order)
    before = X.copy()

    masked = mask_completely_at_random(X, fraction, np.random.default_rng(1))

    gaps = np.isnan(masked)
    assert gaps.sum() == round(fraction * 210)
    assert np.array_equal(masked[~gaps], X[~gaps])
    assert np.array_equal(X, before)


def test_every_cell_is_equally_likely_to_be_blanked():
    repeats, fraction = 2000, 0.3
    rng = np.random.default_rng(2)
    counts = sum(
        np.isnan(mask_completely_at_random(np.ones((4, 5)), fraction, rng)) for _ in range(repeats)
    )

    standard_error = math.sqrt(fraction * (1 - fraction) / repeats)
    assert np.abs(counts / repeats - fraction).max() < 5 * standard_error


@pytest.mark.parametrize("fraction", [-0.1, 1.0, math.nan])
def test_a_fraction_outside_its_range_is_refused(fraction):
    with pytest.raises(ValueError, match=r"`fraction` must be in \[0, 1\)"):
        mask_completely_at_random(np.ones((2, 2)), fraction, np.random.default_rng(0))
