"""Typed access to JSON that comes from outside: what is missing or of the wrong type is refused by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

Choice = TypeVar("Choice", bound=str)


class SchemaError(ValueError):
    """A message that does not keep to the protocol; the text names the field."""


class Fields:
    """Typed access to one JSON object."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, Mapping):
            raise SchemaError(f"{where} is not an object")
        self._map: Mapping[str, object] = value
        self._where = where

    def __contains__(self, key: str) -> bool:
        return key in self._map

    def _get(self, key: str) -> object:
        if key not in self._map:
            raise SchemaError(f"{self._where} lacks '{key}'")
        return self._map[key]

    def _wrong(self, key: str, wanted: str) -> SchemaError:
        return SchemaError(f"{self._where}.{key} is {self._map[key]!r:.60}, not {wanted}")

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise self._wrong(key, "a string")
        return value

    def flag(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def whole(self, key: str) -> int:
        value = self._get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._wrong(key, "a whole number")
        return value

    def number(self, key: str) -> float:
        value = self._get(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise self._wrong(key, "a finite number")
        return float(value)

    def positive(self, key: str) -> float:
        value = self.number(key)
        if value <= 0:
            raise self._wrong(key, "above zero")
        return value

    def lacks(self, key: str) -> bool:
        """Whether it is not there, or null."""
        return self._map.get(key) is None

    def maybe_number(self, key: str) -> float | None:
        return None if self._map.get(key) is None else self.number(key)

    def inside(self, key: str) -> Fields:
        return Fields(self._get(key), f"{self._where}.{key}")

    def each(self, key: str) -> list[Fields]:
        value = self._get(key)
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        return [Fields(item, f"{self._where}.{key}[{i}]") for i, item in enumerate(value)]

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, "a list of strings")
        return tuple(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        value = self._get(key)
        numbers = value if isinstance(value, list) else [None]
        if not all(isinstance(item, int | float) and math.isfinite(item) for item in numbers):
            raise self._wrong(key, "a list of finite numbers")
        return tuple(map(float, numbers))

    def one_of(self, key: str, choices: Sequence[Choice]) -> Choice:
        value = self.text(key)
        for choice in choices:
            if value == choice:
                return choice
        raise self._wrong(key, "one of " + ", ".join(choices))
