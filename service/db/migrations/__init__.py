"""The database's history; `service.db.schema` runs it."""
