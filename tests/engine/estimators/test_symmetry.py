"""K is symmetric to the last bit, and graph and edges agree with it, whatever the table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnce_engine import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.inference.result import EdgeRule, Verdict
from vnce_engine.simulate import mask_completely_at_random


def table(seed: int, n: int, d: int, fraction: float) -> np.ndarray:
    """Return correlated columns of unlike units, some cells missing, no column nearly empty."""
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(n, d)) + rng.normal(size=(n, 1)))
    X *= 10.0 ** rng.integers(-3, 4, size=d)
    masked = mask_completely_at_random(X, fraction, rng)
    masked[:6] = X[:6]
    return masked


def assert_coherent(model: TruncatedGaussianVNCE | TruncatedGaussianNCE) -> None:
    K = model.precision_
    assert (K == K.T).all()
    rho = model.partial_correlation_
    np.testing.assert_array_equal(rho, rho.T)
    assert np.isnan(rho).any() != model.diagnostics_.is_positive_definite
    assert len(model.edges_) == len(K) * (len(K) - 1) // 2
    for edge in model.edges_:
        assert edge.precision == K[edge.source, edge.target] == K[edge.target, edge.source]
        np.testing.assert_equal(edge.partial_correlation, rho[edge.source, edge.target])
        is_large = edge.precision != 0 and abs(edge.partial_correlation) >= model.edge_threshold
        is_tested = model.edge_rule_ is EdgeRule.FALSE_DISCOVERY_RATE
        assert edge.selected == (edge.verdict is Verdict.PRESENT if is_tested else is_large)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(12, 40),
    d=st.integers(2, 6),
    fraction=st.sampled_from([0.0, 0.2]),
    kind=st.sampled_from(["adaptive", "ridge", "l1"]),
    linear=st.sampled_from(["zero", "free"]),
)
def test_k_is_symmetric_to_the_bit_and_edges_agree_with_it(
    seed: int, n: int, d: int, fraction: float, kind: str, linear: str
) -> None:
    model = TruncatedGaussianVNCE(
        linear=linear,
        penalty=0.05,
        penalty_kind=kind,
        noise_ratio=3,
        max_iter=10,
        random_state=0,
    ).fit(table(seed, n, d, fraction))
    assert_coherent(model)
    assert np.isfinite(model.precision_).all()


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["held-out", "ebic", "stability"])
def test_it_is_so_after_a_whole_path_too(selection: str) -> None:
    # 40 rows and 15 columns, as round-off breaks symmetry most easily where little is known.
    X = table(3, 40, 15, 0.0)
    model = TruncatedGaussianVNCE(
        linear="zero",
        penalty_kind="l1",
        selection=selection,
        n_subsamples=4,
        noise_ratio=3,
        random_state=0,
    ).fit(X)
    assert_coherent(model)
    graph = model.precision_ != 0
    assert (graph == graph.T).all()
    assert not graph.all()


@pytest.mark.slow
@pytest.mark.parametrize("linear", ["zero", "free"])
def test_it_is_so_where_many_interactions_hover_at_zero(linear: str) -> None:
    # 24 columns and 16 rows: slopes at zero differ from the penalty's by rounding.
    X = np.abs(np.random.default_rng(15).normal(size=(16, 24)))
    model = TruncatedGaussianVNCE(
        linear=linear,
        penalty_kind="l1",
        penalty=0.002,
        noise_ratio=3,
        max_iter=15,
        random_state=0,
    ).fit(X)
    assert_coherent(model)
