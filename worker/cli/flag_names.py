"""Fields of requests, in messages of the service, by the options that set them."""

import re

from service.http.words import visible
from worker.cli.options import (
    BOOTSTRAP,
    COMPARISON,
    DIFFERENCE,
    ESTIMATION,
    EXPERIMENT,
    READING,
    SCORING,
    SIMULATION,
)

_BY_POINTER = {
    pointer: flag
    for request in (
        READING,
        COMPARISON,
        ESTIMATION,
        SIMULATION,
        EXPERIMENT,
        SCORING,
        BOOTSTRAP,
        DIFFERENCE,
    )
    for pointer, flag in request.flags.items()
}
# A choice among kinds is named by what it chooses, as in `model`.
_BY_FIELD = {
    pointer.removesuffix("/kind").rpartition("/")[2]: flag for pointer, flag in _BY_POINTER.items()
}
# A flag that has fields of its own, given for each model.
_MODELS = "/specifications"
_QUOTES = "'\""
_FIELD = re.compile(r"`(\w+)(?:=([^`]*))?`")


def flag_at(pointer: str) -> str:
    """Return what sets the field at a JSON pointer, or holds it; else the pointer itself."""
    holder = pointer
    while holder:
        if holder in _BY_POINTER:
            flag = _BY_POINTER[holder]
            return f"{flag}{_which(pointer)}" if holder == _MODELS else flag
        holder = holder.rpartition("/")[0]
    return pointer


def _which(pointer: str) -> str:
    """Return which of the models that are compared a pointer is of, and which of its options."""
    place, *fields = pointer.removeprefix(_MODELS).split("/")[1:] or [""]
    if not place:
        return ""
    option = f", {fields[-1].replace('_', '-')}" if fields and fields[-1] != "kind" else ""
    return f" number {int(place) + 1}{option}"


def flag_of(parameter: str) -> str:
    """Return what sets a parameter of a query: those of lists have flags of their names."""
    return _BY_POINTER.get(f"/{parameter}", f"--{parameter.replace('_', '-')}")


def in_flags(message: str) -> str:
    """Return a message of the service for a terminal, with flags in place of quoted fields."""
    return _FIELD.sub(_flag, visible(message))


def _flag(said: re.Match[str]) -> str:
    field, value = said.groups()
    flag = _BY_FIELD.get(field)
    if flag is None:
        return said[0]
    if value in (None, "true"):
        return flag
    # A list is given with commas between its items.
    return f"{flag} {value.strip('[]').replace(', ', ',').strip(_QUOTES)}"
