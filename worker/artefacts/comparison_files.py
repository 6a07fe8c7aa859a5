"""Files of a comparison: a line each model, a line each pair, a picture; and those of a part."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from service.jobs.specs.comparison import Specification
from service.results.comparison_result import (
    ComparedEdgeRead,
    ComparedModelRead,
    ComparedPairRead,
)
from service.results.edges import Edge
from service.results.formats import MediaType
from service.results.outcome import Artefact
from vnce_engine.data.clusters import Codes
from worker.artefacts.exports.csv_text import csv_bytes
from worker.artefacts.exports.tables import npy_artefact
from worker.artefacts.figures.comparison import draw_comparison
from worker.artefacts.figures.drawing import figure_artefacts

FloatArray = NDArray[np.float64]

PAIRS, HELD_OUT, CLUSTERS = "pairs.parquet", "held-out.npy", "clusters.npy"

# A row each pair, in the order of the table, null where it does not have the number.
_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("target", pa.string()),
        ("scaled_interaction", pa.float64()),
        ("selected", pa.bool_()),
        ("partial_correlation", pa.float64()),
        ("debiased", pa.float64()),
        ("lower", pa.float64()),
        ("upper", pa.float64()),
        ("verdict", pa.string()),
    ]
)
_OF_A_MODEL = _SCHEMA.names[3:]
# Fields of a model, and of its fits.
_DENSITY = ("log_density", "standard_error", "behind", "behind_standard_error")
_FITS = ("monte_carlo_error", "converged", "n_unconverged_folds", "n_selected")


@dataclass(frozen=True)
class ComparedNetwork:
    """What one model says of rows that it has not seen, and of every pair."""

    # (n,), of rows with something observed; all NaN without a density.
    log_densities: FloatArray
    pairs: pa.Table
    # (n,), the cluster of each of these rows; None where rows are independent.
    clusters: Codes | None = None

    @classmethod
    def of(
        cls,
        log_densities: FloatArray,
        edges: Sequence[Edge],
        names: Sequence[str],
        clusters: Codes | None = None,
    ) -> Self:
        """Return the network of variables whose order is that of the `names`."""
        places = {name: place for place, name in enumerate(names)}
        ordered = sorted(edges, key=lambda edge: (places[edge.source], places[edge.target]))
        return cls(
            log_densities,
            pa.Table.from_pylist([vars(edge) for edge in ordered], schema=_SCHEMA),
            clusters,
        )

    @classmethod
    def read(cls, files: Mapping[str, bytes]) -> Self:
        """Return what `artefacts` wrote."""
        log_densities = np.load(BytesIO(files[HELD_OUT]), allow_pickle=False)
        clusters = None
        if CLUSTERS in files:
            clusters = np.load(BytesIO(files[CLUSTERS]), allow_pickle=False)
        pairs = parquet.read_table(BytesIO(files[PAIRS]), schema=_SCHEMA)
        return cls(log_densities, pairs, clusters)

    def artefacts(self) -> list[Artefact]:
        """Return the files of a part, for the job that puts them together."""
        content = BytesIO()
        parquet.write_table(self.pairs, content)
        files = [
            npy_artefact(HELD_OUT.removesuffix(".npy"), self.log_densities),
            Artefact(PAIRS, MediaType.PARQUET, content.getvalue()),
        ]
        if self.clusters is not None:
            files.append(npy_artefact(CLUSTERS.removesuffix(".npy"), self.clusters))
        return files

    @property
    def selected(self) -> NDArray[np.bool_]:
        """Which pairs (m,) it selects."""
        selected: NDArray[np.bool_] = self.pairs["selected"].to_numpy()
        return selected

    @property
    def has_correlation(self) -> NDArray[np.bool_]:
        """Of which pairs (m,) it can say whether they are edges: none where K is indefinite."""
        is_known: NDArray[np.bool_] = self.pairs["partial_correlation"].is_valid().to_numpy()
        return is_known

    @property
    def strength(self) -> FloatArray:
        """The |scaled interaction| of every pair (m,)."""
        strength: FloatArray = np.abs(self.pairs["scaled_interaction"].to_numpy())
        return strength

    def of_pair(self, place: int) -> dict[str, Any]:
        """Return what it says of one pair, by field."""
        return {field: self.pairs[field][place].as_py() for field in _OF_A_MODEL}


@dataclass(frozen=True)
class Votes:
    """How many models have each pair as an edge, of those that can say so."""

    num_selected: NDArray[np.int64]
    """(m,)"""
    is_unanimous: NDArray[np.bool_]
    """(m,): whether all of them select the pair, or none."""

    @classmethod
    def of(cls, networks: Iterable[ComparedNetwork]) -> Self:
        """Count them."""
        networks = list(networks)
        num_selected = np.sum([one.selected for one in networks], axis=0)
        num_voters = np.sum([one.has_correlation for one in networks], axis=0)
        return cls(num_selected, (num_selected == 0) | (num_selected == num_voters))


def comparison_artefacts(
    specifications: Sequence[Specification],
    models: Sequence[ComparedModelRead],
    networks: dict[str, ComparedNetwork],
    order: Sequence[int],
    disputed: Sequence[ComparedPairRead],
    title: str,
) -> list[Artefact]:
    """Return `comparison.csv`, a line each model, `pairs.csv`, a line each pair, and the picture.

    `networks` come by the model's name, in the order of `models`, and `order` is that of the pairs.
    """
    lines = [_line(specifications[model.position], model) for model in models]
    header = [*lines[0]]
    draw = partial(draw_comparison, models=models, disputed=disputed, title=title)
    return [
        Artefact(
            "comparison.csv", MediaType.CSV, csv_bytes(header, ([*line.values()] for line in lines))
        ),
        Artefact("pairs.csv", MediaType.CSV, _pairs_csv(networks, order)),
        *figure_artefacts("comparison", draw),
    ]


def _line(
    specification: Specification, model: ComparedModelRead
) -> dict[str, str | float | bool | None]:
    return {
        "name": model.name,
        "model": specification.model.kind,
        "estimator": specification.estimator.kind,
        **{field: getattr(model, field) for field in _DENSITY},
        **{field: None if model.fit is None else getattr(model.fit, field) for field in _FITS},
        "reason": model.reason,
    }


def _pairs_csv(networks: dict[str, ComparedNetwork], order: Sequence[int]) -> bytes:
    ordered = [(name, network.pairs.take(order)) for name, network in networks.items()]
    of_models = [pairs[field].to_pylist() for _, pairs in ordered for field in _OF_A_MODEL]
    names = [ordered[0][1][end].to_pylist() for end in ("source", "target")]
    votes = Votes.of(networks.values())
    counts = [(int(votes.num_selected[k]), bool(votes.is_unanimous[k])) for k in order]
    header = ["source", "target", "n_selected", "all_agree"]
    header += [f"{name} {field}" for name in networks for field in _OF_A_MODEL]
    rows = (
        [*ends, *count, *values]
        for ends, count, values in zip(
            zip(*names, strict=True), counts, zip(*of_models, strict=True), strict=True
        )
    )
    return csv_bytes(header, rows)


def compared_pair(networks: dict[str, ComparedNetwork], place: int) -> ComparedPairRead:
    """Return a pair in every model."""
    edges = [ComparedEdgeRead(model=name, **one.of_pair(place)) for name, one in networks.items()]
    pairs = next(iter(networks.values())).pairs
    return ComparedPairRead(
        source=pairs["source"][place].as_py(),
        target=pairs["target"][place].as_py(),
        n_selected=sum(edge.selected for edge in edges),
        edges=edges,
    )
