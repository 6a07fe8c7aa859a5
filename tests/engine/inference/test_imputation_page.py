"""The example of docs/imputation.md, as a reader would run it."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[3] / "docs" / "imputation.md"


@pytest.mark.slow
def test_the_page_on_imputation_pools_a_regression_whose_truth_its_intervals_hold(
    tmp_path: Path,
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    (tmp_path / "example.py").write_text(example)
    found = runpy.run_path(str(tmp_path / "example.py"))
    truth, pooled = np.array([0.0, 1.0, -0.5]), found["pooled"]
    # Of a hundred seeds one would go beyond it in one of three coefficients.
    lower, upper = pooled.interval(0.997)
    assert ((lower < truth) & (truth < upper)).all()
    # A third of the cells are missing, and with them up to two thirds of what rows say together.
    complete_error = 1 / np.sqrt(300 * 0.75)
    assert (pooled.standard_error[1:] > complete_error).all()
    assert (pooled.standard_error[1:] < 2 * complete_error).all()
    assert ((pooled.missing_share > 0.2) & (pooled.missing_share < 0.8)).all()
