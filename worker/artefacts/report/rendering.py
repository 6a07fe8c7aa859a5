"""Pages that need no other file, from the templates beside this one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from service.http.words import visible
from service.results.formats import MediaType
from service.results.outcome import Artefact
from service.results.schemas import VersionsRead
from worker.artefacts.report.methods import computed_with, references
from worker.artefacts.report.section import Section

_PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    # Names and messages are others': what cannot be seen in them is written out.
    finalize=lambda value: visible(value) if type(value) is str else value,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def report(
    template: str, title: str, methods: str, sections: Sequence[Section], **what: Any
) -> Artefact:
    """Return `report.html`; the works that its methods cite are listed."""
    content = _PAGES.get_template(template).render(
        title=title, methods=methods, references=references(methods), sections=sections, **what
    )
    return Artefact("report.html", MediaType.HTML, content.encode())


def job_report(
    section: Section, estimations: Sequence[str], seed: int, versions: VersionsRead
) -> Artefact:
    """Return `report.html` of a job that is not an estimation itself, but of `estimations`."""
    methods = [section.methods, computed_with(versions, seed)]
    if estimations:
        jobs = " and ".join(dict.fromkeys(estimations))
        methods.insert(0, f"How networks were estimated is said by the report of {jobs}.")
    return report("job.html.jinja", section.heading, " ".join(methods), [section])
