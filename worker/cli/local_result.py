"""The result of a job that was run here, as a service would have it."""

import hashlib

from service.results.outcome import Outcome
from worker.cli.client import JsonObject
from worker.cli.printing import to_json
from worker.cli.result_folder import RESULT


def result_files(outcome: Outcome) -> tuple[JsonObject, dict[str, bytes]]:
    """Return the document and all files, the document among them.

    It says of its files what a service's does, but for their addresses.
    """
    described = [
        {
            "name": artefact.name,
            "media_type": artefact.media_type,
            "size": len(artefact.content),
            "sha256": hashlib.sha256(artefact.content).hexdigest(),
        }
        for artefact in outcome.artefacts
    ]
    document = {**outcome.document.model_dump(mode="json"), "files": described}
    files = {RESULT: to_json(document).encode()}
    files |= {artefact.name: artefact.content for artefact in outcome.artefacts}
    return document, files
