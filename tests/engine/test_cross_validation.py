"""Rows held out by a step of Newton's method."""

import torch

from vnce_engine.cross_validation import _moved
from vnce_engine.region import Region


def test_a_fold_without_a_solution_has_no_estimate_and_not_that_of_all_rows() -> None:
    augmented = torch.eye(3, dtype=torch.float64)
    region = Region(True, torch.full((2,), 1e-3, dtype=torch.float64), is_definite=True)
    assert _moved(augmented, torch.full_like(augmented, torch.nan), region).isnan().all()
    assert not _moved(augmented, torch.full_like(augmented, 0.1), region).isnan().any()
