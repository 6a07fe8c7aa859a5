"""`python -m service migrate` brings the database of `VNCE_DATABASE_URL` to the newest revision."""

import argparse

from service import logs
from service.db import schema
from service.settings import Settings


def main() -> None:
    """Run the migrations."""
    argparse.ArgumentParser(prog="python -m service migrate", description=__doc__).parse_args()
    logs.configure("migrate")
    schema.upgrade(Settings.from_environment().database_url)
