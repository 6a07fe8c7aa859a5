"""Exact linear dependence among columns, looked for where all of them are observed."""

import math
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

_MOST_COLUMNS = 50
_MOST_ROWS = 400
# Residual, relative to the column, that rounding to six digits leaves of an exact combination.
_TOLERANCE = 1e-5
# Smallest share of a column, in its own units of spread, that names it as part of a combination.
_MIN_WEIGHT = 1e-6


def find_dependence(columns: dict[str, pa.Array]) -> list[str]:
    """Return names of columns of which the last is a combination of the others and a constant.

    Empty where there is none, or where it would be dear to tell: with more than 50 columns, or
    with too few complete rows.
    """
    if not 3 <= len(columns) <= _MOST_COLUMNS:
        return []
    is_complete = reduce(pc.and_, [values.is_valid() for values in columns.values()])
    complete = [values.filter(is_complete) for values in columns.values()]
    num_rows = len(complete[0])
    chosen = pa.array(range(0, num_rows, max(1, num_rows // _MOST_ROWS)), pa.int64())
    rows = zip(*(values.take(chosen).to_pylist() for values in complete), strict=True)
    # With as many different rows as columns, any column is a combination of the others.
    if len(set(rows)) < 2 * len(columns) + 2:
        return []
    scales = [_scale(values.take(chosen)) for values in complete]
    vectors = [
        pc.divide(pc.subtract(values, centre), norm)
        for values, (centre, norm) in zip(complete, scales, strict=True)
    ]
    combination = _combination([vector.take(chosen).to_pylist() for vector in vectors])
    if not combination:
        return []
    # What holds in a part of the rows must hold in all of them.
    terms = [pc.multiply(vectors[i], weight) for i, weight in combination.items()]
    if not (pc.max(pc.abs(reduce(pc.add, terms))).as_py() < _TOLERANCE):
        return []
    names = list(columns)
    return [names[i] for i, weight in combination.items() if abs(weight) > _MIN_WEIGHT]


def _scale(values: pa.Array) -> tuple[float, float]:
    """Return the mean and the length of what remains without it; 1 where nothing remains."""
    centre = pc.mean(values).as_py()
    length = math.sqrt(pc.sum(pc.power(pc.subtract(values, centre), 2)).as_py())
    return centre, length or 1.0


def _combination(vectors: list[list[float]]) -> dict[int, float]:
    """Return weights, the last one 1, under which vectors of unit length or zero add up to zero.

    Gram-Schmidt, keeping of each orthogonal vector how it is made of the given ones. Vectors of
    zero length are passed over; empty if the others are independent.
    """
    basis: list[tuple[list[float], dict[int, float]]] = []
    for number, vector in enumerate(vectors):
        if not any(vector):
            continue
        rest, weights = vector, {number: 1.0}
        for unit, made_of in basis:
            share = _dot(rest, unit)
            rest = [x - share * y for x, y in zip(rest, unit, strict=True)]
            for i, weight in made_of.items():
                weights[i] = weights.get(i, 0.0) - share * weight
        length = math.sqrt(_dot(rest, rest))
        if length < _TOLERANCE:
            return {i: weights[i] for i in sorted(weights)}
        basis.append(([x / length for x in rest], {i: w / length for i, w in weights.items()}))
    return {}


def _dot(left: list[float], right: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(left, right, strict=True))
