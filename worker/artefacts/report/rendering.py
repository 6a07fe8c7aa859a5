"""Pages that need no other file, from the templates beside this one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from service.http.words import visible
from service.results.formats import MediaType
from service.results.outcome import Artefact
from service.results.schemas import VersionsRead
from worker.artefacts.report.methods import Paragraph, computed_with
from worker.artefacts.report.references import cited
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
    template: str,
    title: str,
    methods: Sequence[Paragraph],
    sections: Sequence[Section],
    **what: Any,
) -> Artefact:
    """Return `report.html`; the works that its methods cite are listed."""
    works = cited(" ".join(paragraph.text for paragraph in methods))
    content = _PAGES.get_template(template).render(
        title=title, methods=methods, references=works, sections=sections, **what
    )
    return Artefact("report.html", MediaType.HTML, content.encode())


def job_report(
    section: Section, how: Sequence[Paragraph], seed: int, versions: VersionsRead
) -> Artefact:
    """Return `report.html` of a job about networks; `how` says how each was estimated."""
    methods = [*how, Paragraph(f"{section.methods} {computed_with(versions, seed)}")]
    return report("job.html.jinja", section.heading, methods, [section])
