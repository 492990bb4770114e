"""Events and origins as JSON text, the form in which the store keeps them.

Reading is strict about what is there and forgiving about what is not: rows written before a field existed take
its default.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from hermes.adapters.base import Inbound, Origin

T = TypeVar("T")

_ORIGIN = TypeAdapter(Origin)
_INBOUND = TypeAdapter(Inbound)


def origin_to_json(origin: Origin) -> str:
    """`origin` as JSON."""
    return _ORIGIN.dump_json(origin).decode()


def origin_from_json(text: str) -> Origin:
    """The origin that `text` holds. Raises ValueError when it holds anything else."""
    return _read("origin", _ORIGIN, text)


def inbound_to_json(inbound: Inbound) -> str:
    """`inbound` as JSON, without the platform's own `raw` payload."""
    return _INBOUND.dump_json(replace(inbound, raw={}), exclude={"raw"}).decode()


def inbound_from_json(text: str) -> Inbound:
    """The event that `text` holds, its `raw` empty. Raises ValueError when it holds anything else."""
    return _read("event", _INBOUND, text)


def _read(what: str, adapter: TypeAdapter[T], text: str) -> T:
    try:
        value = adapter.validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(f"not a stored {what}: {error}") from error
    if unknown := _unknown(json.loads(text), _KNOWN[what]):
        raise ValueError(f"not a stored {what}: unknown field {unknown!r}")
    return value


_ORIGINS: Mapping[str, Mapping[str, Any]] = {field.name: {} for field in fields(Origin)}
_KNOWN: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "origin": _ORIGINS,
    "event": {field.name: _ORIGINS if field.name == "origin" else {} for field in fields(Inbound)},
}
"""The names of all fields, and of those of the origin inside an event."""


def _unknown(read: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The first field of `read` that the value does not have, also one level down."""
    for name, value in read.items():
        if name not in known:
            return name
        if known[name] and (inner := _unknown(value, known[name])):
            return f"{name}.{inner}"
    return None
