"""The model's profiles as a reader sees them: each parameter with its value, its label and its origin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import lacuna
from lacuna.worker.process import WorkerError
from lacuna.worker.protocol import SchemaError, member, parsed, read

Label = Literal["calibrated", "literature", "predicted"]
"""Fitted to Table 4; a published constant, whose source the origin names; neither."""

LABELS: tuple[Label, ...] = get_args(Label)

PLATFORM_2 = "connectx5-rocev2"
CACHE_VARIANT = "connectx5-rocev2-cache"


class ProfileError(WorkerError):
    """A profile that is missing or is none."""


@dataclass(frozen=True)
class Parameter:
    value: float
    label: Label
    origin: str
    prior: float | None = None
    """Of a calibrated one: where the fit begins, and to which it is held a little."""
    name: str = ""
    inherited: bool = False


@dataclass(frozen=True)
class Profile:
    name: str
    title: str
    path: Path
    parameters: dict[str, Parameter]

    def value(self, name: str) -> float:
        return self.parameters[name].value

    @property
    def calibrated(self) -> list[Parameter]:
        return [p for p in self.parameters.values() if p.label == "calibrated"]


def _directories() -> Iterator[Path]:
    named = os.environ.get("LACUNA_PROFILES")
    yield from [Path(named)] if named else (Path(p) / "profiles" for p in lacuna.__path__)


def names() -> list[str]:
    return sorted({f.stem for d in _directories() for f in d.glob("*.json")})


def find(name: str) -> Path:
    """The file of a profile: a path to one, or the name of one of Lacuna's."""
    if "/" in name or name.endswith(".json"):
        return Path(name)
    for directory in _directories():
        if (file := directory / f"{name}.json").is_file():
            return file
    raise ProfileError(f"there is no profile {name}. There are: {', '.join(names()) or 'none'}; or name a file.")


def load(name: str) -> Profile:
    return _read(find(name))


def _read(file: Path, depth: int = 0) -> Profile:
    if depth > 8:
        raise ProfileError(f"{file}: its bases have no end")
    try:
        said = parsed(file.read_bytes())
        entries = read(dict[str, Any], member(said, "parameters", "profile"), "parameters")
        parameters = {n: replace(read(Parameter, entry, f"parameters.{n}"), name=n) for n, entry in entries.items()}
    except (OSError, SchemaError) as e:
        raise ProfileError(f"cannot read the profile {file}: {e}") from e
    if "base" in said:
        base = _read(file.parent / f"{said['base']}.json", depth + 1).parameters
        parameters = {n: replace(p, inherited=True) for n, p in base.items()} | parameters
    return Profile(str(said.get("name", file.stem)), str(said.get("title", file.stem)), file, parameters)
