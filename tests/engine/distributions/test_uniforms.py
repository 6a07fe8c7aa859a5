import pytest
import torch

from vnce_engine.distributions.uniforms import open_uniforms, sobol_stream


@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 2), (1000, 20), (4096, 20), (50, 600)])
def test_uniforms_lie_strictly_inside_the_interval(n, d):
    for uniforms in (
        sobol_stream(d, seed=0)(n),
        open_uniforms((n, d), torch.Generator().manual_seed(0)),
    ):
        assert uniforms.shape == (n, d)
        assert uniforms.dtype == torch.float64
        assert (uniforms > 0).all()
        assert (uniforms < 1).all()


def test_sobol_points_are_the_middles_of_their_steps_of_which_the_first_begins_at_zero():
    steps = sobol_stream(20, seed=0)(1000) * 2**31

    assert torch.equal(steps % 2, torch.ones(1000, 20, dtype=torch.float64))


def test_sobol_points_fill_every_stratum_of_each_coordinate_evenly():
    points = sobol_stream(30, seed=7)(256)

    strata = (points * 256).floor().long().sort(dim=0).values

    assert (strata == torch.arange(256).unsqueeze(1)).all()


def test_uniforms_depend_on_the_seed_alone():
    state = torch.get_rng_state()

    assert torch.equal(sobol_stream(4, seed=1)(9), sobol_stream(4, seed=1)(9))
    assert not torch.equal(sobol_stream(4, seed=1)(9), sobol_stream(4, seed=2)(9))
    assert torch.equal(state, torch.get_rng_state())
