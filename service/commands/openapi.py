"""`python -m service openapi FILE` writes the API's OpenAPI document as YAML."""

import argparse
from pathlib import Path

import yaml

from service.app import create_app
from service.settings import Authentication, Settings


def document() -> str:
    """Return the document; equal code gives equal text."""
    app = create_app(Settings(database_url="sqlite://", authentication=Authentication.NONE))
    return yaml.safe_dump(app.openapi(), sort_keys=False, allow_unicode=True, width=100)


def main() -> None:
    """Write the document to the file that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m service openapi", description=__doc__)
    parser.add_argument("file", type=Path, help="file to write")
    parser.parse_args().file.write_text(document(), encoding="utf-8")
