"""What a key may be used for."""

from enum import StrEnum


class Scope(StrEnum):
    """What a key may be used for; none of them includes another."""

    READ = "read"
    SUBMIT = "submit"
    ADMIN = "admin"
    METRICS = "metrics"


# What each allows, for the documentation and for refusals.
MEANING = {
    Scope.READ: "looking at data sets, jobs and results",
    Scope.SUBMIT: "uploading, submitting, cancelling and deleting",
    Scope.ADMIN: "making, listing and revoking the tenant's keys",
    Scope.METRICS: "reading the metrics and the status of the whole service",
}
