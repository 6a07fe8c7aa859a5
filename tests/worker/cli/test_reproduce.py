from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from service.jobs.specs.experiment import CoverageSpec, GraphRecoverySpec, MixturePopulationSpec

Vnce = Callable[..., Result]


def test_sizes_that_an_experiment_does_not_have_are_each_named(vnce: Vnce, tmp_path: Path) -> None:
    sizes = ["--fractions", "0.4", "--n-data-sets", "20"]
    result = vnce("reproduce", "mixture-population", *sizes, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "--fractions: This does not apply here, or is misspelt." in result.output
    assert "--n-data-sets: This does not apply here, or is misspelt." in result.output
    assert not (tmp_path / "out").exists()


def test_help_names_every_size(vnce: Vnce) -> None:
    text = vnce("reproduce", "--help").output
    specs = (GraphRecoverySpec, MixturePopulationSpec, CoverageSpec)
    sizes = {size for spec in specs for size in spec.model_fields} - {"name"}
    assert all(f"--{size.replace('_', '-')}" in text for size in sizes)
