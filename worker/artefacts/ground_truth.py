"""The graph that is known to be true: undirected pairs of names."""

from collections.abc import Iterable
from itertools import combinations

Pair = tuple[str, str]


def pair(one: str, other: str) -> Pair:
    """Return the unordered pair of two names in its one canonical order."""
    return (one, other) if one <= other else (other, one)


def moral_graph(directed: Iterable[tuple[str, str]]) -> frozenset[Pair]:
    """Return the moral graph of (cause, effect) edges: undirected, co-parents joined.

    It is the undirected graph whose missing edges a distribution that is Markov to the directed
    graph must respect, hence what an undirected estimate can be scored against.
    """
    parents: dict[str, set[str]] = {}
    for cause, effect in directed:
        parents.setdefault(effect, set()).add(cause)
    links = {pair(cause, effect) for effect, causes in parents.items() for cause in causes}
    marriages = {pair(*two) for causes in parents.values() for two in combinations(causes, 2)}
    return frozenset(links | marriages)
