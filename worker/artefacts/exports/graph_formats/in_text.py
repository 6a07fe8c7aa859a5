"""GML and Graphviz's DOT, the formats in plain text."""

import re
from collections.abc import Iterator, Mapping

import networkx as nx

# A number such as 1.E-05, which networkx writes and igraph cannot read.
_BARE_POINT = re.compile(r"^( *\w+ -?\d+\.)(?=E)")


def gml(graph: nx.Graph) -> bytes:
    """Return GML; it is ASCII, so that other characters are entities such as &#20307;."""
    lines = (_BARE_POINT.sub(r"\g<1>0", line) for line in nx.generate_gml(graph))
    return "\n".join([*lines, ""]).encode("ascii")


def dot(graph: nx.Graph) -> bytes:
    """Return DOT; nodes are n0, n1, ... and their labels are their names.

    Not every name could be a node's id: none that ends with a backslash can be quoted.
    """
    return "\n".join([*_dot_lines(graph), ""]).encode()


def _dot_lines(graph: nx.Graph) -> Iterator[str]:
    ids = {name: f"n{number}" for number, name in enumerate(graph)}
    yield "graph {"
    yield f"  graph [{_attributes(graph.graph)}];"
    for name, node in ids.items():
        yield f"  {node} [label={_label(name)}];"
    for one, other, values in graph.edges(data=True):
        yield f"  {ids[one]} -- {ids[other]} [{_attributes(values)}];"
    yield "}"


def _attributes(values: Mapping[str, object]) -> str:
    """Return attributes; all values are quoted, since DOT's bare numbers have no exponents."""
    return ", ".join(f'{key}="{_attribute(value)}"' for key, value in values.items())


def _attribute(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _label(name: str) -> str:
    """Return a quoted label that is drawn as `name`.

    In labels a backslash starts an escape and an ampersand an entity of HTML, so both are
    escaped themselves. A null character ends a string in Graphviz; it becomes U+0000.
    """
    text = name.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\n", "\\n").replace("\0", "U+0000") + '"'
