"""The graph that is known to be true: undirected pairs of names."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Pair = tuple[str, str]


def pair(one: str, other: str) -> Pair:
    """Return the unordered pair of two names in its one canonical order."""
    return (one, other) if one <= other else (other, one)


def adjacency(names: Sequence[str], truth: Iterable[Pair]) -> NDArray[np.bool_]:
    """Return the symmetric adjacency matrix (d, d) among `names`; other pairs are left out."""
    index = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.bool_)
    for one, other in truth:
        if one in index and other in index:
            i, j = index[one], index[other]
            matrix[i, j] = matrix[j, i] = True
    return matrix


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
