"""The database's history; `service.schema` runs it."""
