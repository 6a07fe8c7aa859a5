"""Filling the missing cells of a table by fixed values or noise before a fit without them."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import assert_never

import torch

from vnce_engine.contrastive.noise import ProductTruncatedNormal
from vnce_engine.data.observations import MIN_ROWS, Observations
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.inference.result import FitResult
from vnce_engine.runtime.reports import FitWarning


class Imputation(StrEnum):
    """What is put in place of missing cells where a fit has none for them."""

    MEAN = "mean"
    ZERO = "zero"
    NOISE = "noise"
    DROP = "drop"


def fill(
    observations: Observations, imputation: Imputation, generator: torch.Generator
) -> Observations:
    """Return a complete table: filled by fixed values or noise, or its complete rows.

    Rows with nothing observed are left out. Raises `ValueError` as `complete_rows` does if only
    complete rows are to be kept.
    """
    if imputation is Imputation.DROP:
        return complete_rows(observations)
    observations = observations.of_rows(observations.observed.any(dim=1))
    values, observed = observations.values, observations.observed
    match imputation:
        case Imputation.MEAN:
            filling = (values.sum(dim=0) / observed.sum(dim=0)).expand_as(values)
        case Imputation.ZERO:
            filling = torch.zeros_like(values)
        case Imputation.NOISE:
            noise = ProductTruncatedNormal.fit(observations)
            filling = noise.sample(open_uniforms((values.shape[0], values.shape[1]), generator))
        case _:
            assert_never(imputation)
    return replace(
        observations,
        values=torch.where(observed, values, filling),
        observed=torch.ones_like(observed),
    )


def complete_rows(observations: Observations) -> Observations:
    """Return the rows without a missing cell.

    Raises `ValueError` if they are fewer than `MIN_ROWS`, or leave a column without two different
    values.
    """
    kept = observations.of_rows(observations.observed.all(dim=1))
    if kept.num_rows < MIN_ROWS:
        raise ValueError(
            f"`imputation='drop'` needs at least {MIN_ROWS} complete rows, got "
            f"{kept.num_rows} of {observations.num_rows}"
        )
    constant = (kept.values == kept.values[0]).all(dim=0).nonzero().flatten().tolist()
    if constant:
        raise ValueError(
            f"`imputation='drop'` leaves {kept.num_rows} rows, in which column {constant[0]} "
            "(counted from 0) has no two different values; keep more of them"
        )
    return kept


def not_modelled(imputation: str, num_missing: int) -> FitWarning:
    """Return the warning that so many cells were filled, or dropped, before the fit."""
    if imputation == Imputation.DROP:
        meaning = (
            "left out with their rows before the fit: the estimates are valid if cells are missing "
            "completely at random, and rest on complete rows alone."
        )
    else:
        meaning = (
            f"filled ({imputation}) before the fit, which biases the estimates, increasingly with "
            "their share."
        )
    return FitWarning("missing-cells-not-modelled", f"Missing cells ({num_missing}) were {meaning}")


def fit_filled(
    observations: Observations,
    imputation: Imputation,
    seed: int,
    fit: Callable[[Observations], FitResult],
) -> FitResult:
    """Return the `fit` of the filled table, its counts and warnings those of the table as it was.

    Raises `ValueError` as `fill` does.
    """
    filled = fill(observations, imputation, torch.Generator().manual_seed(seed))
    result = fit(filled)
    num_missing = int((~observations.observed).sum())
    num_empty_rows = int((~observations.observed.any(dim=1)).sum())
    diagnostics = replace(
        result.diagnostics,
        num_rows=observations.num_rows,
        num_empty_rows=num_empty_rows,
        num_missing=num_missing,
        num_clusters=observations.num_clusters,
    )
    result = replace(result, diagnostics=diagnostics)
    if imputation is not Imputation.DROP:  # what is left out is not filled
        num_missing -= num_empty_rows * observations.num_columns
    if not num_missing:
        return result
    result = replace(result, warnings=(not_modelled(imputation, num_missing), *result.warnings))
    if imputation is Imputation.DROP:
        return result
    # Filled cells would count as observed ones.
    reason = "missing cells were filled before the fit"
    return replace(result, uncertainty=None, no_uncertainty=reason, model_draws=())
