"""Reports as tests read them."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from tinyhtml5.parser import HTMLParser

from service.results.outcome import Artefact


def page_of(artefacts: Iterable[Artefact]) -> str:
    """Return the report among the files of a result."""
    [page] = [file for file in artefacts if file.name == "report.html"]
    assert page.media_type == "text/html"
    return page.content.decode()


def parsed(page: str) -> Element:
    """Return the page's root; fails where the page is not valid."""
    parser = HTMLParser(namespace_html_elements=False)
    root: Element = parser.parse(page)
    assert parser.errors == []
    return root


def text_of(element: Element) -> str:
    """Return what is written in an element, on one line."""
    return " ".join(" ".join(element.itertext()).split())


def verdicts_of(root: Element) -> list[str]:
    """Return the sentences that a page begins with."""
    return [text_of(one) for one in root.iter("p") if "verdict" in one.attrib.get("class", "")]


def bold_rows(root: Element) -> list[list[str]]:
    """Return the cells of the rows of tables that are bold."""
    rows = [row for row in root.iter("tr") if row.attrib.get("class") == "bold"]
    return [[text_of(cell) for cell in row] for row in rows]
