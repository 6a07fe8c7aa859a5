"""What a reader of a result must know: of its table, as the upload and the engine saw it."""

from collections.abc import Sequence

import numpy as np

from service.datasets.schemas import DatasetWarning
from service.jobs.specs.base import planned
from service.results.schemas import ResultWarning
from vnce_engine.estimators.base import NetworkEstimator
from worker.artefacts.fitted import FittedNetwork


def censoring_warnings(censored: dict[str, int]) -> list[ResultWarning]:
    """Return what to know of cells that were treated as missing, counted by variable."""
    if not censored:
        return []
    counts = ", ".join(f"{count} in {name}" for name, count in censored.items())
    return [
        ResultWarning(
            code="censored-as-missing",
            message="Cells that hold a limit, such as <0.5, were treated as missing, which biases "
            f"the estimates: {counts}.",
            columns=list(censored),
        )
    ]


def upload_warnings(
    warnings: Sequence[DatasetWarning], variables: Sequence[str]
) -> list[ResultWarning]:
    """Return those that concern the variables used, or no column in particular."""
    used = set(variables)
    return [
        ResultWarning(code=warning.code, message=warning.message, columns=warning.columns)
        for warning in warnings
        if used.issuperset(warning.columns)
    ]


def table_and_engine_warnings(
    fitted: FittedNetwork, table_warnings: Sequence[DatasetWarning]
) -> list[ResultWarning]:
    """Return both; what the upload and the engine both noticed is told once."""
    of_table = upload_warnings(table_warnings, planned(fitted.spec.variables))
    told = {(warning.code, frozenset(warning.columns)) for warning in of_table}
    return of_table + [
        warning
        for warning in engine_warnings(fitted.estimator)
        if (warning.code, frozenset(warning.columns)) not in told
    ]


def engine_warnings(estimator: NetworkEstimator) -> list[ResultWarning]:
    """Return what the fit has noticed."""
    return [
        ResultWarning(
            code=warning.code, message=as_options(warning.message), columns=list(warning.columns)
        )
        for warning in estimator.warnings_
    ]


def as_options(message: str) -> str:
    """Return an engine's message with the names that options have here."""
    # scikit-learn's `transform` is a method, so that in Python the option has another name.
    return message.replace("column_transform=", "transform=")


def imputation_warnings(fitted: FittedNetwork) -> list[ResultWarning]:
    """Return why there are no completed tables that were asked for, or why they are too alike."""
    estimator = fitted.estimator
    if fitted.spec.imputations is None or not np.isnan(fitted.X).any():
        return []
    if not estimator.diagnostics_.is_positive_definite:
        code = "imputations-not-drawn"
        message = (
            "K is not positive definite: missing cells need not have a distribution, and no "
            "completed tables were drawn."
        )
    elif not estimator.has_model_draws_:
        code = "imputations-too-alike"
        message = (
            "All completed tables were drawn under the same K and h, whose uncertainty is not "
            f"known ({estimator.no_uncertainty_}): they differ too little, and pooled standard "
            "errors are too small."
        )
    else:
        return []
    return [ResultWarning(code=code, message=message, columns=[])]
