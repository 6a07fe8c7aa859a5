"""How Alembic reaches the database: on the connection that `service.db.schema` hands over."""

from alembic import context
from sqlalchemy import Connection

connection: Connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    # Given where what migrations make is compared with what records declare.
    target_metadata=context.config.attributes.get("metadata"),
    # SQLite alters a table by copying it.
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
