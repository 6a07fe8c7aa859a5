"""GraphML and GEXF, the formats in XML."""

from collections.abc import Iterable
from io import BytesIO
from xml.etree.ElementTree import SubElement

import networkx as nx
from networkx.readwrite.gexf import GEXFWriter


def graphml(graph: nx.Graph) -> bytes:
    """Return GraphML; the nodes' ids are their names."""
    content = BytesIO()
    nx.write_graphml_xml(nx.relabel_nodes(graph, _xml_names(graph)), content, named_key_ids=True)
    return content.getvalue()


def gexf(graph: nx.Graph) -> bytes:
    """Return GEXF 1.2; nodes are numbered from 0 and their labels are their names.

    GEXF has no attributes of a whole graph, so the graph's own are lines of its description.
    """
    numbered = nx.Graph()
    numbers = {name: number for number, name in enumerate(graph)}
    numbered.add_nodes_from(
        (numbers[name], {"label": text}) for name, text in _xml_names(graph).items()
    )
    numbered.add_edges_from(
        (numbers[one], numbers[other], values) for one, other, values in graph.edges(data=True)
    )
    writer = GEXFWriter(numbered, prettyprint=False)
    meta = writer.xml.find("meta")
    # The same graph gives the same bytes on every day.
    del meta.attrib["lastmodifieddate"]
    SubElement(meta, "description").text = "\n".join(f"{k}: {v}" for k, v in graph.graph.items())
    content = BytesIO()
    writer.write(content)
    return content.getvalue()


def _xml_names(names: Iterable[str]) -> dict[str, str]:
    """Return every name as XML can hold it, no two alike.

    A character that XML 1.0 excludes becomes its code point, such as U+0007; should that be
    another variable's name, an underscore follows.
    """
    texts = {name: _xml_text(name) for name in names}
    taken = {name for name, text in texts.items() if name == text}
    for name, text in texts.items():
        if name != text:
            while text in taken:
                text += "_"
            taken.add(text)
            texts[name] = text
    return texts


def _xml_text(name: str) -> str:
    return "".join(
        c
        if c in "\t\n\r" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff")
        else f"U+{ord(c):04X}"
        for c in name
    )
