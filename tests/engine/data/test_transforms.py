import math

import numpy as np
import pytest

from vnce_engine.data.transforms import Transform


@pytest.mark.parametrize("transform", list(Transform))
def test_inverse_undoes_forward_and_keeps_gaps(transform):
    x = np.array([0.0, 1e-12, 0.3, 1.0, 17.0, 1e9, math.nan])

    back = transform.inverse(transform.forward(x))

    assert back == pytest.approx(x, rel=1e-13, abs=0, nan_ok=True)


@pytest.mark.parametrize("transform", list(Transform))
def test_forward_increases_from_zero(transform):
    y = transform.forward([0.0, 0.01, 1.0, 8.0])

    assert y[0] == 0
    assert (np.diff(y) > 0).all()


@pytest.mark.parametrize(
    ("transform", "expected"),
    [("none", 8.0), ("sqrt", math.sqrt(8)), ("cbrt", 2.0), ("log1p", math.log(9))],
)
def test_each_name_means_its_function(transform, expected):
    assert Transform(transform).forward(8.0) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("transform", list(Transform))
def test_the_log_slope_is_that_of_a_difference(transform):
    x = np.array([0.3, 1.0, 17.0, 1e5])
    step = 1e-5 * x

    slope = (transform.forward(x + step) - transform.forward(x - step)) / (2 * step)

    # The difference's own error is that of 1e-10 of the third derivative, and rounding.
    assert transform.log_slope(x) == pytest.approx(np.log(slope), abs=1e-9)
    assert np.isnan(transform.log_slope(math.nan))


@pytest.mark.parametrize("transform", [t for t in Transform if t is not Transform.NONE])
def test_negative_values_are_outside_the_domains_of_all_but_the_identity(transform):
    with pytest.raises(
        ValueError, match=f"The transform '{transform}' needs .* at least 0, got -2"
    ):
        transform.forward([1.0, -2.0])
    with pytest.raises(
        ValueError, match=f"The transform '{transform}' needs .* at least 0, got -2"
    ):
        transform.inverse([1.0, -2.0])
    assert Transform.NONE.forward([-2.0]) == Transform.NONE.inverse([-2.0]) == [-2.0]
