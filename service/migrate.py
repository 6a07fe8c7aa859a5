"""`python -m service.migrate` brings the database of `VNCE_DATABASE_URL` to the newest revision."""

from service import logs, schema
from service.settings import Settings


def main() -> None:
    """Run the migrations."""
    logs.configure("migrate")
    schema.upgrade(Settings().database_url)


if __name__ == "__main__":
    main()
