"""`python -m service openapi FILE` writes the API's OpenAPI document as YAML."""

import argparse
from pathlib import Path
from typing import Any

import yaml

from service.app import create_app
from service.settings import Authentication, Settings


class _Dumper(yaml.SafeDumper):
    """Writes lists of words on one line."""

    def represent_sequence(
        self, tag: str, sequence: Any, flow_style: bool | None = None
    ) -> yaml.SequenceNode:
        """Return a list as a node."""
        is_flat = not any(isinstance(item, dict | list) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=is_flat)


_Dumper.add_representer(
    float,
    lambda dumper, number: (
        dumper.represent_data(int(number))
        if number.is_integer()
        else yaml.SafeDumper.represent_float(dumper, number)
    ),
)


def document() -> str:
    """Return the document; equal code gives equal text."""
    app = create_app(Settings(database_url="sqlite://", authentication=Authentication.NONE))
    return yaml.dump(app.openapi(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=160)


def main() -> None:
    """Write the document to the file that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m service openapi", description=__doc__)
    parser.add_argument("file", type=Path, help="file to write")
    parser.parse_args().file.write_text(document(), encoding="utf-8")
