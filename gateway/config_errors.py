"""What pydantic found wrong, as lines that people understand: the YAML path, what was found, what is expected."""

import difflib
from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hermes.redact import looks_secret

_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping of keys to values",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping of keys to values",
    "string_type": "text",
    "tuple_type": "a list",
}


def explain(
    error: ValidationError,
    model: type[BaseModel],
    prefix: tuple[str, ...] = (),
    hints: Mapping[str, str] | None = None,
    elsewhere: Mapping[str, str] | None = None,
) -> list[str]:
    """One line a mistake. `prefix` is where `model` lies in the file; `hints` add to keys that are missing.

    `elsewhere` says of keys that come from outside the file where that is.
    """
    details = error.errors(include_url=False)
    return [_line(detail, model, prefix, hints or {}, elsewhere or {}) for detail in details]


def _line(
    detail: ErrorDetails,
    model: type[BaseModel],
    prefix: tuple[str, ...],
    hints: Mapping[str, str],
    elsewhere: Mapping[str, str],
) -> str:
    steps = tuple(step for step in detail["loc"] if step != "[key]")
    path = ".".join(map(str, (*prefix, *steps))) or "the whole file"
    if detail["type"] == "extra_forbidden":
        return f"{path}: unknown key. {_nearest(str(steps[-1]), _keys_at(model, steps[:-1]))}"
    if detail["type"] == "missing":
        return f"{path}: is missing. Set it here{hints.get(str(steps[-1]), '')}"
    expected = _EXPECTED.get(detail["type"]) or detail["msg"].removeprefix("Input should be ")
    source = elsewhere.get(str(steps[0])) if steps else None
    place = path if source is None else f"{path} ({source})"
    return f"{place}: found {_shown(path, detail['input'])}, expected {expected}"


def _shown(path: str, found: object) -> str:
    match found:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case bool():
            return "true" if found else "false"
        case _:
            return "***" if looks_secret(path) else repr(found)


def _nearest(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(known)}"


def _keys_at(model: type[BaseModel], steps: tuple[int | str, ...]) -> tuple[str, ...]:
    """The keys of the block that `steps` lead to."""
    here: Any = model
    for step in steps:
        here = here.model_fields[step].annotation if _is_block(here) else get_args(here)[-1]
        if NoneType in get_args(here):
            here = next(kind for kind in get_args(here) if kind is not NoneType)
    return tuple(here.model_fields)


def _is_block(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
