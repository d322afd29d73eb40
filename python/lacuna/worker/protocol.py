"""Records that come as JSON, from another process or from a file, and go out as JSON. msgspec checks them against the
types that they are read as: what is missing or of a wrong type is refused by name, what is unknown is passed over, and
a field with a default may be missing, as it is in files of an earlier version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

Whole = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]

T = TypeVar("T")


class SchemaError(ValueError):
    """A message that does not keep to the protocol; the text names the field."""


def parsed(text: bytes | str) -> dict[str, Any]:
    """A JSON object."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as e:
        raise SchemaError(f"no JSON object: {e}") from e


def read(kind: type[T], value: Any, where: str) -> T:
    """A record of that kind from what JSON said; `where` it said so, for the error."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as e:
        said = str(e)
        raise SchemaError(said.replace("`$", f"`{where}") if "`$" in said else f"{said} - at `{where}`") from e


def member(value: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in value:
        raise SchemaError(f"Object missing required field `{name}` - at `{where}`")
    return value[name]


def written(value: object, *, indent: int = 1) -> str:
    """As JSON. With an indent of 0 on one line."""
    return msgspec.json.format(msgspec.json.encode(value), indent=indent).decode()


def written_in_lines(head: object, lists: Mapping[str, Iterable[object]]) -> str:
    """The text of a file: a head, then these members, each item on a line, for grep and diff."""
    members = [
        f' "{name}": [\n' + ",\n".join(f"  {written(item, indent=0)}" for item in items) + "\n ]"
        for name, items in lists.items()
    ]
    return written(head).removesuffix("\n}") + ",\n" + ",\n".join(members) + "\n}\n"
