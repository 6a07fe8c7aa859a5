"""The example of docs/models.md, as a reader would run it."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[3] / "docs" / "models.md"


@pytest.mark.slow
def test_the_page_on_models_has_an_example_that_recovers_its_truth(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    (tmp_path / "example.py").write_text(example)
    found = runpy.run_path(str(tmp_path / "example.py"))["fit"].theta
    # Standard errors at n = 2000 and nu = 5 are about .02 for each (`test_fits` derives them).
    sign = np.sign(found[0])
    np.testing.assert_allclose(sign * found[:2], [1.2, -0.8], atol=5 * 0.02)
    np.testing.assert_allclose(found[2], 0.5, atol=5 * 0.02)
    assert capsys.readouterr().out.startswith("converged")
