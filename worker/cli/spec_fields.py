"""What the models of requests say of their fields: what each takes, for what, and by default.

The first sentence of a field's description says what it is for. In it "left out: …" or "null: …"
says what holds without a value.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

# Null where that is a choice; None is nothing given.
NULL: Final = object()
# Its name where a user gives it.
NONE = "none"
_FIRST_SENTENCE = re.compile(r".*?\.(?=\s|$)", re.DOTALL)
_WITHOUT_VALUE = re.compile(r"[;,]? *\b(left out|null): ([^;.]*)")

# Models, each by who has its fields: empty where it need not be said.
Owned = Iterable[tuple[str, type[BaseModel]]]


@dataclass(frozen=True)
class SpecField:
    """A field of a request, and its place there as a JSON pointer."""

    pointer: str
    help: str
    # What holds where nothing is given, in words; empty where nothing is said of it.
    default: str
    # The values that have a name.
    words: dict[str, Any]
    # Of what type other values are: bool, int, float or str.
    types: tuple[type, ...]
    is_list: bool


@dataclass(frozen=True)
class _Stated:
    """What one model says of a field."""

    owner: str
    annotation: Any
    description: str
    # None where the description tells the default, or where there is none.
    default: Any

    @classmethod
    def of(cls, owner: str, field: FieldInfo) -> "_Stated":
        is_told = field.is_required() or field.default_factory is not None
        default = None if is_told or isinstance(field.default, BaseModel) else field.default
        return cls(owner, field.annotation, field.description or "", default)

    @property
    def help(self) -> str:
        """The first sentence, with what null means where that is a choice."""
        found = _FIRST_SENTENCE.match(self.description)
        return _WITHOUT_VALUE.sub(
            lambda said: (
                f"; `{NONE}`: {said[2]}" if said[1] == "null" and self.default is not None else ""
            ),
            self.description if found is None else found[0],
        )

    @property
    def default_in_words(self) -> str:
        if self.default is None or self.default == []:
            said = _WITHOUT_VALUE.search(self.description)
            return "" if said is None else said[2].replace("`", "")
        if isinstance(self.default, bool):
            return str(self.default).lower()
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


def spec_fields(models: Owned, without: Collection[str] = ()) -> Iterator[SpecField]:
    """Yield the fields of a request of which `models` are the forms, those of its parts included.

    A field that several have comes once, with what each says of it. `without` are the pointers of
    those that are left out, with all that they hold.
    """
    yield from _below("", list(models), without, [])


def _below(
    holder: str,
    models: list[tuple[str, type[BaseModel]]],
    without: Collection[str],
    said: list[_Stated],
) -> Iterator[SpecField]:
    """Yield the fields of models that stand at `holder`, of which `said` is told there.

    That is what to say of the field that tells the models apart; it comes first.
    """
    found: dict[str, list[tuple[str, FieldInfo]]] = {}
    for owner, model in models:
        for name, field in model.model_fields.items():
            found.setdefault(name, []).append((owner, field))
    owners = {owner for owner, _ in models}
    for name, fields in sorted(found.items(), key=lambda item: not _is_tag(item[1][0][1])):
        pointer = f"{holder}/{name}"
        if pointer in without:
            continue
        stated = [_Stated.of(owner, field) for owner, field in fields]
        parts = [(s.owner or _tag(part), part) for s in stated for part in _models(s.annotation)]
        if parts:
            yield from _below(pointer, parts, without, stated)
        elif said and _is_tag(fields[0][1]):
            tags: Any = Literal[tuple(_tag(model) for _, model in models)]
            chosen = [replace(one, annotation=tags) for one in said]
            yield _field(pointer, chosen, {one.owner for one in chosen})
        else:
            yield _field(pointer, stated, owners)


def _field(pointer: str, stated: list[_Stated], owners: Collection[str]) -> SpecField:
    found = dict.fromkeys(kind for one in stated for kind in _alternatives(one.annotation))
    words: dict[str, Any] = {word: word for word in found if isinstance(word, str)}
    types = tuple(kind for kind in (bool, int, float, str) if kind in found)
    if NoneType in found and any(one.default is not None for one in stated):
        words[NONE] = NULL
    if types == (bool,) and any(one.default for one in stated):  # no flag could switch it off
        words, types = {"true": True, "false": False}, ()
    default = _default(stated)
    return SpecField(pointer, _help(stated, owners), default, words, types, list in found)


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models among which an annotation lets choose."""
    return [kind for kind in _alternatives(annotation) if _is_class(kind, BaseModel)]


def _tag(model: type[BaseModel]) -> str:
    """Return the word by which a request says that it means this model."""
    [(word,)] = [get_args(f.annotation) for f in model.model_fields.values() if _is_tag(f)]
    return str(word)


def _is_tag(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1


def _is_class(kind: Any, of: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, of)


def _alternatives(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation allows, and the words of its enumerations."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        yield from map(str, arguments)
    elif _is_class(annotation, Enum):
        yield from (member.value for member in annotation)
    elif origin is None:
        yield annotation
    else:
        if origin is list:
            yield list
        for argument in arguments[:1] if origin is Annotated else arguments:
            yield from _alternatives(argument)


def _help(stated: list[_Stated], owners: Collection[str]) -> str:
    """Return what is said of a field, each different text with whose field it is of."""
    sentences = []
    for text, having in _by(lambda one: one.help, stated).items():
        # What most have is told of no one.
        whose = "" if 2 * len(having) > len(owners) else ", ".join(filter(None, having))
        sentences.append(f"**{whose}:** {text}" if whose else text)
    return " ".join(sentences)


def _default(stated: list[_Stated]) -> str:
    """Return what holds where nothing is given, and for whom where that differs."""
    texts = _by(lambda one: one.default_in_words, stated)
    commonest = max(texts, key=lambda text: len(texts[text]))
    parts = [
        f"{text} for {', '.join(having)}" for text, having in texts.items() if text != commonest
    ]
    if not parts or commonest == next(iter(texts)):
        return "; ".join([commonest, *parts])
    return "; ".join([*parts, f"{commonest} for others"])


def _by(text_of: Callable[[_Stated], str], stated: list[_Stated]) -> dict[str, list[str]]:
    """Return the owners, each once, by what is said of their field."""
    groups: dict[str, dict[str, None]] = {}
    for one in stated:
        groups.setdefault(text_of(one), {})[one.owner] = None
    return {text: list(owners) for text, owners in groups.items()}
