"""Options of commands, one a field of a request's models; and the request, of what was given."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel

from worker.cli.client import JsonObject
from worker.cli.spec_fields import NULL, SpecField, spec_fields

Command = TypeVar("Command", bound=Callable[..., None])

# In `--help`, and in messages.
_TYPES = {int: ("int", "a whole number"), float: ("number", "a number"), str: ("text", "a text")}
_TRUTH: dict[str, Any] = {"true": True, "false": False}
# Longer lists of words stand in the help.
_WIDEST = 36


@dataclass(frozen=True)
class SpecOption:
    """The option of one field."""

    field: SpecField
    flag: str
    default: str
    panel: str

    @property
    def name(self) -> str:
        """The parameter of the command's function."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def is_repeated(self) -> bool:
        """Whether it is given once for every item: texts may hold any separator."""
        return self.field.is_list and str in self.field.types

    def parameter(self) -> inspect.Parameter:
        """Return it as a parameter of which typer makes an option; None is nothing given."""
        annotation: Any = Any
        text = self.field.help
        shown: dict[str, Any] = {"show_default": self.default or False}
        if self.field.types == (bool,):
            annotation, shown = bool | None, {"show_default": False}
        elif self.is_repeated:
            annotation = list[str] | None
            text, shown["metavar"] = f"{text.rstrip('.')}; repeatable.", "<text>"
        else:
            types = [_TYPES[kind][0] for kind in self.field.types]
            values = "|".join([*self.field.words, *types])
            if len(values) > _WIDEST:
                text += f" One of {', '.join(self.field.words)}."
            metavar = "NAME" if len(values) > _WIDEST else f"<{values}>"
            shown |= {
                "parser": self.read,
                "metavar": f"{metavar},…" if self.field.is_list else metavar,
            }
        option = typer.Option(self.flag, help=text, rich_help_panel=self.panel, **shown)
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(
            self.name, kind, default=None, annotation=Annotated[annotation, option]
        )

    def read(self, text: str) -> Any:
        """Return what a text stands for; raises `typer.BadParameter` if it is nothing here."""
        if self.field.is_list:
            return [self._read_one(part.strip()) for part in text.split(",")]
        return self._read_one(text)

    def _read_one(self, text: str) -> Any:
        is_truth = self.field.types == (bool,)
        words, types = (_TRUTH, ()) if is_truth else (self.field.words, self.field.types)
        if text in words:
            return words[text]
        for kind in types:
            try:
                value = kind(text)
            except ValueError:
                continue
            if kind is str or math.isfinite(value):  # JSON holds no other number
                return value
        *others, last = [*words, *(_TYPES[kind][1] for kind in types)]
        must = f"{', '.join(others)} or {last}" if others else last
        raise typer.BadParameter(f"must be {must}, got {text!r}")


class RequestOptions:
    """The options of the commands that make one kind of request.

    `models` are its forms, each with what the fields that it alone has are said to be of. `panels`
    are the headings of the help, by the pointer of what holds the fields. `flags` are, by pointer,
    those that are not called as their fields, and `places` what a command takes otherwise.
    `defaults` are those that the command line has of its own.
    """

    def __init__(
        self,
        models: Mapping[str, type[BaseModel]],
        *,
        panels: Mapping[str, str],
        flags: Mapping[str, str] | None = None,
        places: Mapping[str, str] | None = None,
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        fields = {field.pointer: field for field in spec_fields(models.items(), places or {})}
        kind = fields.pop("/kind", None)
        self._constants = {} if kind is None else {kind.pointer: next(iter(kind.words))}
        self.options = [
            SpecOption(
                field=field,
                flag=(flags or {}).get(pointer) or _flag(field),
                default=(defaults or {}).get(pointer) or field.default,
                panel=panels[pointer.rpartition("/")[0]],
            )
            for pointer, field in fields.items()
        ]
        # What sets each field.
        self.flags = {option.field.pointer: option.flag for option in self.options}
        self.flags |= places or {}

    def document(self, given: Mapping[str, Any]) -> JsonObject:
        """Return the request: what was `given`, by parameter, and nothing else."""
        values = {option.field.pointer: given[option.name] for option in self.options}
        chosen = {p: value for p, value in values.items() if value not in (None, [])}
        document: JsonObject = {}
        for pointer, value in (self._constants | chosen).items():
            *holders, name = pointer.split("/")[1:]
            part = document
            for holder in holders:
                part = part.setdefault(holder, {})
            part[name] = None if value is NULL else value
        return document


def with_options(*requests: RequestOptions) -> Callable[[Command], Command]:
    """Give a command the options of requests; its `**given` is what was given of them.

    One that several have, as `--seed`, is of all; its help is the first one's.
    """

    def add(command: Command) -> Command:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        options = [option for request in requests for option in request.options]
        made = {option.name: option.parameter() for option in reversed(options)}
        parameters = [*own, *reversed(made.values())]
        # What typer reads.
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return add


def _flag(field: SpecField) -> str:
    *_, holder, name = field.pointer.split("/")
    if name == "kind":
        name = holder
    elif field.is_list and str in field.types:  # one of them each time
        name = name.removesuffix("s")
    return f"--{name.replace('_', '-')}"
