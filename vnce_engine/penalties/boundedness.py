"""Which penalty a fit needs for its estimates to be bounded, where rows are few.

A likelihood, a pseudo-likelihood and score matching of complete rows have no optimum where some
direction v has vᵀx the same in all of them: K + t vvᵀ fits ever better as t grows. With h (or a
mean) estimated that is so of every table with fewer rows than columns and one, with h zero of every
one with fewer rows than columns. From there on vᵀx varies, unless columns are functions of others.

Along such a direction likelihoods grow as log t and score matching as t. A ridge, quadratic in t,
bounds both at any strength, L1 likelihoods at any and score matching from a strength on; the
adaptive penalty, itself a logarithm in the end, bounds likelihoods from a strength on and score
matching at none.
"""

from enum import StrEnum
from typing import assert_never

from vnce_engine.penalties.penalty import (
    LOG_SCALE,
    REFERENCE_ROWS,
    Penalty,
    PenaltyKind,
    weakest_safe_strength,
)

# Bounded by any L1 penalty, likelihoods have estimates within a few times those of independent
# columns from this strength on (6 to 30 rows, 12 to 30 columns).
_WEAKEST_L1 = 0.01


class Growth(StrEnum):
    """How an objective grows with t along such a direction."""

    LOGARITHMIC = "logarithmic"
    LINEAR = "linear"


def unbounded(name: str, rule: str, value: object) -> ValueError:
    """Return the refusal of the argument `name`, which has to be as `rule` says."""
    return ValueError(f"`{name}` must be {rule}, got {value!r}: the estimates would be unbounded")


def least_rows(num_columns: int, *, has_mean: bool) -> int:
    """Return the rows from which estimates are bounded without a penalty."""
    return num_columns + has_mean


def few_rows(num_rows: int, num_columns: int, *, has_mean: bool) -> str | None:
    """Return in words that rows are fewer than `least_rows`; None if they are not."""
    least = least_rows(num_columns, has_mean=has_mean)
    if num_rows >= least:
        return None
    means = " and their means" if has_mean else ""
    return (
        f"with {num_rows} rows, fewer than the {least} that {num_columns} columns{means} need "
        "without a penalty"
    )


def refuse_few_rows(
    given: float | None, penalty: Penalty, growth: Growth, *, has_mean: bool
) -> None:
    """Raise `ValueError` where rows are too few for the penalty, which was `given` as a strength.

    Says which option, and which value of it, would do.
    """
    found = few_rows(penalty.num_rows, len(penalty.inverse_k0), has_mean=has_mean)
    if found is None:
        return
    weakest = _weakest_strengths(penalty, growth)
    if penalty.kind not in weakest:
        kinds = " or ".join(
            f"'{kind}' (a `penalty` of at least {strength:.2g})"
            for kind, strength in weakest.items()
        )
        raise unbounded("penalty_kind", f"{kinds} {found}", str(penalty.kind))
    if penalty.strength < weakest[penalty.kind]:
        raise unbounded("penalty", f"at least {weakest[penalty.kind]:.2g} {found}", given)


def _weakest_strengths(penalty: Penalty, growth: Growth) -> dict[PenaltyKind, float]:
    """Return the weakest strength of each kind of penalty that bounds the objective."""
    ridge = weakest_safe_strength(PenaltyKind.RIDGE)
    num_rows, num_columns = penalty.num_rows, len(penalty.inverse_k0)
    per_strength = REFERENCE_ROWS / num_rows
    match growth:
        case Growth.LOGARITHMIC:
            # At most ½ log t a column, against ½ t₀² log(t²) a pair.
            gain, pairs = 0.5 * num_columns, 0.5 * num_columns * (num_columns - 1)
            adaptive = gain / (pairs * LOG_SCALE**2 * per_strength)
            return {
                PenaltyKind.ADAPTIVE: _rounded_up(adaptive),
                PenaltyKind.RIDGE: ridge,
                PenaltyKind.L1: _WEAKEST_L1,
            }
        case Growth.LINEAR:
            # A direction D with Dx = 0, or D (x - mean x) = 0, has D_jj k_j <= sum_i |D_ij| √(k_i
            # k_j), k = 1 / k0, by Cauchy and Schwarz: sum_j D_jj k_j is at most twice the sum over
            # pairs. The objective gains sum_j D_jj g_j, where the mean weight g_j is at most 1.
            l1 = 2 / (per_strength * float(penalty.inverse_k0.min()))
            return {PenaltyKind.RIDGE: ridge, PenaltyKind.L1: _rounded_up(max(_WEAKEST_L1, l1))}
        case _:
            assert_never(growth)


def _rounded_up(strength: float) -> float:
    """Return a strength of two digits that is no weaker."""
    text = f"{strength:.1e}"
    if float(text) >= strength:
        return float(text)
    digits, exponent = text.split("e")
    return float(f"{float(digits) + 0.1:.1f}e{exponent}")
