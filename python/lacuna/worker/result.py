"""What a run leaves, of whatever measures: the guide, an experiment on methods, a bench, a validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from lacuna import __version__


@dataclass
class Result:
    """The head that all have. What a kind of run has beside is its subclass."""

    lacuna_version: str
    created: str
    command: str
    """It measures the same again."""


Made = TypeVar("Made", bound=Result)


def begun(kind: Callable[..., Made], command: str, *members: Any) -> Made:
    """A result of now."""
    return kind(__version__, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), command, *members)
