"""Tenants: those who share a service, each of whom sees nothing but what is theirs.

A session that is bound to a tenant adds `tenant = ...` to every SELECT, UPDATE and DELETE of a
table whose record is an `OwnedRecord`, and writes the tenant into every such row that it adds. So
no query can forget to ask. What belongs to an owned row, such as a job's result, is only reached
through that row. Sessions that are bound to no tenant see everything: those of the dispatcher, of
claims and heartbeats, and of migrations.
"""

from sqlalchemy import Engine, String, event
from sqlalchemy.orm import (
    Mapped,
    ORMExecuteState,
    Session,
    UOWTransaction,
    mapped_column,
    with_loader_criteria,
)

from service.db.tenant_names import DEFAULT_TENANT, MAX_LENGTH

_KEY = "tenant"


class OwnedRecord:
    """A record of a table whose rows belong to one tenant each."""

    tenant: Mapped[str] = mapped_column(String(MAX_LENGTH), server_default=DEFAULT_TENANT)


class TenantSession(Session):
    """A session that is bound to a tenant; None: to none."""

    def __init__(self, engine: Engine, tenant: str | None) -> None:
        super().__init__(engine, expire_on_commit=False, info={_KEY: tenant})


def tenant_of(session: Session) -> str:
    """Return the tenant to whom rows that are added belong.

    Raises `LookupError` for a session that is bound to none.
    """
    tenant: str | None = session.info.get(_KEY)
    if tenant is None:
        raise LookupError("this session is bound to no tenant, so its rows would be nobody's")
    return tenant


@event.listens_for(TenantSession, "do_orm_execute")
def _keep_to_the_tenant(state: ORMExecuteState) -> None:
    tenant = state.session.info[_KEY]
    # Columns that are loaded later are those of a row that was found.
    if tenant is None or state.is_column_load or state.is_insert:
        return
    state.statement = state.statement.options(
        with_loader_criteria(
            OwnedRecord, lambda record: record.tenant == tenant, include_aliases=True
        )
    )


@event.listens_for(TenantSession, "before_flush")
def _name_the_owner(session: Session, context: UOWTransaction, instances: object) -> None:
    for record in session.new:
        if isinstance(record, OwnedRecord) and record.tenant is None:
            record.tenant = tenant_of(session)
