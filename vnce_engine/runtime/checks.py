"""What arguments must be like: errors that name the argument, the rule and the value."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# That generators take.
LARGEST_SEED = 2**63 - 1
# More draws, sweeps or iterations than these are a slip: no fit would come to their end.
_MOST = 1_000_000
# Longer values are cut short in messages.
_MOST_CHARACTERS = 80
# Names listed in one message before the rest is only counted.
MAX_NAMES = 10


def shown(value: object) -> str:
    """Return a value as a message shows it, however large it is."""
    try:
        text = repr(value)
    except ValueError:  # of a whole number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


def listed(names: Sequence[str]) -> str:
    """Return the names in one line, cut short when they are many."""
    first = ", ".join(names[:MAX_NAMES])
    return first if len(names) <= MAX_NAMES else f"{first} and {len(names) - MAX_NAMES} more"


def as_number(value: object) -> float:
    """Return a real number as a float, infinite where it is too large; NaN for anything else."""
    is_bool = isinstance(value, bool | np.bool_)
    if is_bool or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise `ValueError` unless the argument `name` has one of the `choices` for its value."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(repr(str(choice)) for choice in choices)
        raise ValueError(f"`{name}` must be one of {allowed}, got {shown(value)}")


def check_number(name: str, value: object, rule: str, above: float, below: float) -> None:
    """Raise `ValueError`, which states the `rule`, unless `value` lies between the two bounds."""
    if not above < as_number(value) < below:
        raise ValueError(f"`{name}` must be {rule}, got {shown(value)}")


def check_positive(name: str, value: object) -> None:
    """Raise `ValueError` unless `value` is a positive, finite number."""
    check_number(name, value, "positive and finite", 0, math.inf)


def check_range(name: str, value: object, low: float, high: float) -> None:
    """Raise `ValueError` unless `value` is a number from `low` to `high`, both included."""
    if not low <= as_number(value) <= high:
        raise ValueError(f"`{name}` must be a number from {low:g} to {high:g}, got {shown(value)}")


def check_fraction(name: str, value: object) -> None:
    """Raise `ValueError` unless `value` is a number from 0 on and below 1."""
    if not 0 <= as_number(value) < 1:
        raise ValueError(f"`{name}` must be in [0, 1), got {shown(value)}")


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number by its type."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_count(name: str, value: object, least: int = 1, most: int = _MOST) -> None:
    """Raise `ValueError` unless `value` is a whole number from `least` to `most`."""
    if not (is_whole(value) and least <= as_number(value) <= most):
        raise ValueError(
            f"`{name}` must be a whole number from {least} to {most}, got {shown(value)}"
        )


def check_seed(name: str, value: object) -> None:
    """Raise `ValueError` unless `value` can seed a generator."""
    check_count(name, value, least=0, most=LARGEST_SEED)


def as_array(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return `values` as an array of its own, NaN where masked.

    Raises `ValueError` unless they are numbers.
    """
    try:
        if isinstance(values, np.ma.MaskedArray):
            return filled(values)
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"`{name}` must hold numbers, got {shown(values)}: {error}") from error


def filled(values: "np.ma.MaskedArray[Any, Any]") -> NDArray[np.float64]:
    """Return a masked array's values as an array of its own, NaN where masked."""
    # Masked cells may hold what is no number.
    readable = np.where(np.ma.getmaskarray(values), 0, values.data)
    numbers: NDArray[np.float64] = readable.astype(np.float64)
    numbers[np.ma.getmaskarray(values)] = np.nan
    return numbers
