"""Numbers that stand for missing: codes far outside the other values of their column."""

import pyarrow as pa
import pyarrow.compute as pc

_REPEATED = [float(digit * length) for digit in "789" for length in range(2, 8)]
# What instruments, surveys and file formats write for "no value": runs of 7, 8 or 9, the ends of
# integer ranges, and the fill values of netCDF and of single precision.
CODES = frozenset(
    {
        *_REPEATED,
        *(-code for code in _REPEATED),
        *(-9.0, 32767.0, -32768.0, 65535.0, 2147483647.0, -2147483648.0),
        *(1e20, 1e30, -1e30, 1e35, 9.969209968386869e36, -3.4028234663852886e38),
    }
)
_MOST_CODES = 5
_MIN_OTHERS = 3


def sentinels(values: pa.Array) -> dict[float, int]:
    """Return the codes in a column and how often each occurs.

    A code counts if it is the smallest or largest value and lies farther from the others than
    these spread, or is the only negative value.
    """
    found: dict[float, int] = {}
    while len(found) < _MOST_CODES:
        code = _outlying_code(values)
        if code is None:
            break
        found[code] = pc.sum(pc.equal(values, code)).as_py()
        values = without(values, {code: found[code]})
    return found


def without(values: pa.Array, codes: dict[float, int]) -> pa.Array:
    """Return the column with nulls in place of these codes."""
    if not codes:
        return values
    is_code = pc.is_in(values, pa.array(list(codes)))
    return pc.if_else(is_code, pa.scalar(None, pa.float64()), values)


def _outlying_code(values: pa.Array) -> float | None:
    ends = pc.min_max(values).as_py()
    for code in (ends["min"], ends["max"]):
        if code not in CODES:
            continue
        others = pc.drop_null(without(values, {code: 1}))
        if len(others) < _MIN_OTHERS:
            continue
        rest = pc.min_max(others).as_py()
        gap = max(rest["min"] - code, code - rest["max"])
        if gap > rest["max"] - rest["min"] or (code < 0 <= rest["min"]):
            return float(code)
    return None
