"""The database: sessions of one tenant, clock, stored bytes, schema and its migrations.

Imports no other room.
"""
