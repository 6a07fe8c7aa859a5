"""How Alembic reaches the database: on the connection that `service.db.schema` hands over."""

from alembic import context
from sqlalchemy import Connection

from service.db.schema import METADATA

connection: Connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=METADATA,
    # SQLite alters a table by copying it.
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
