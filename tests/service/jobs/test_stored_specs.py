"""Specifications out of the database are read as they were stored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from service.jobs.specs import JobCreate, spec_of
from service.jobs.specs.base import SpecModel
from service.jobs.specs.comparison import ComparisonPartSpec, ComparisonSpec
from service.jobs.specs.contrastive import DEFAULT_TOL, ContrastiveSpec, VnceEstimatorSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.simulation import SimulationSpec

# Rows that were written while a request and what is stored of it still were two classes each.
STORED = json.loads((Path(__file__).parent / "stored_specs.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("document", STORED, ids=lambda document: str(document["kind"]))
def test_a_row_of_an_earlier_release_is_read_as_it_is(document: dict[str, Any]) -> None:
    # What has come since has its default.
    of_kind: dict[str, dict[str, Any]] = {
        "scoring": {"ground_truth": None},
        "bootstrap": {"n_subsets": 0},
        "bootstrap-part": {"are_subsets": False},
    }
    later = of_kind.get(document["kind"], {})
    read = spec_of(document)
    if isinstance(read, EstimationSpec | ComparisonSpec):
        later["cluster"] = None
    if isinstance(read, ComparisonPartSpec):
        later["estimation"] = document["estimation"] | {"cluster": None}
    if isinstance(read, EstimationSpec):
        later["imputations"] = None
        if isinstance(read.estimator, ContrastiveSpec):
            rule = {"fdr": 0.1, "fdr_method": "benjamini-hochberg"}
            later["estimator"] = document["estimator"] | rule
    assert read.model_dump(mode="json") == document | later


def test_the_rows_are_of_every_class() -> None:
    def classes(base: type[SpecModel]) -> Iterator[type[SpecModel]]:
        for derived in base.__subclasses__():
            yield derived
            yield from classes(derived)

    specs = [spec_of(document) for document in STORED]
    fields = [value for spec in specs for _, value in spec]
    fields += [item for value in fields if isinstance(value, list) for item in value]
    parts = [value for value in fields if isinstance(value, SpecModel)]
    assert {type(read) for read in (*specs, *parts)} == {*classes(SpecModel)} - {ContrastiveSpec}


def test_what_is_stored_is_not_judged_again() -> None:
    # Bounds were wider, fields have gone, others have come since.
    drawn = {"kind": "simulation", "graph": "ring", "n_rows": 2, "missing_fraction": 0.9, "gone": 1}
    simulation = spec_of(drawn)
    assert isinstance(simulation, SimulationSpec)
    assert (simulation.n_rows, simulation.n_variables) == (2, 20)
    estimator = {"kind": "vnce", "preset": "paper", "noise_scale": 1e-9, "gone": "warn"}
    fitted = {"kind": "estimation", "dataset_id": "ds_1", "estimator": estimator}
    network = spec_of(fitted)
    assert isinstance(network, EstimationSpec)
    assert isinstance(network.estimator, VnceEstimatorSpec)
    assert (network.estimator.noise_scale, network.estimator.tol) == (1e-9, DEFAULT_TOL)
    # The same documents are no requests.
    adapter: TypeAdapter[Any] = TypeAdapter(JobCreate)
    for document, faults in ((drawn, {"n_rows", "gone"}), (fitted, {"noise_scale", "gone"})):
        with pytest.raises(ValidationError) as refused:
            adapter.validate_python(document)
        assert {error["loc"][-1] for error in refused.value.errors()} == faults
