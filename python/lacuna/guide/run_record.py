"""What one run learned, as it is kept in guide.json and bench.json, and read from there again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from lacuna.worker.hardware import Machine, Nic, RemoteMachine
from lacuna.worker.protocol import Positive, SchemaError, Whole, member, parsed, read, written_in_lines
from lacuna.worker.records import SCHEMA, Conditions, Failure, Method, Row, Skip, Subject, flat, row_members
from lacuna.worker.result import Result


@dataclass(frozen=True)
class LeftOut:
    """A method on a path that was so far behind in smaller cells that it was not tried in this one."""

    method: str
    path: str
    behind: float
    """How many times as long as the best it took there, at the least."""


@dataclass(frozen=True)
class Look:
    """One visit of the worker to a cell."""

    subject: Subject
    number: Whole
    """The second look at a cell comes after all first ones."""
    at_seconds: float
    conditions: Conditions
    left_out: tuple[LeftOut, ...] = ()
    counts: bool = True
    """Whether the rows have it: a disturbed look does not count where there is a quiet one."""


@dataclass(frozen=True)
class Repeat:
    """A cell that was looked at twice: what either look called the best, and how far the two are apart."""

    subject: Subject
    first: str
    second: str
    apart: float
    """How many times as long the first look's best took in the second look as that look's own best."""
    first_us: Positive
    second_us: Positive
    """The first look's best in both looks."""


@dataclass
class Run(Result):
    """Everything one run of the worker learned. Its JSON is this, written down."""

    machine: Machine
    nic: Nic
    methods: tuple[Method, ...]
    rows: list[Row] = field(default_factory=list)
    errors: list[Failure] = field(default_factory=list)
    skips: dict[Skip, int] = field(default_factory=dict)
    """How many cells each skip concerned."""
    unmeasured: list[str] = field(default_factory=list)
    """Cells that did not fit the time, in words."""
    looks: list[Look] = field(default_factory=list)
    """In the order of time."""
    repeats: list[Repeat] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0
    """How long measuring took."""
    fault: str = ""
    """Planted to test the guide; the numbers are of no use then."""
    peer: RemoteMachine | None = None
    """The other machine; None where both processes were on one."""

    def to_json(self) -> str:
        """The text of the file."""
        lists = {
            "looks": [flat(look, "subject", "conditions") for look in self.looks],
            "repeats": [flat(repeat, "subject") for repeat in self.repeats],
            "rows": [row_members(row) for row in self.rows],
        }
        return written_in_lines(self.head(), lists)

    def head(self) -> dict[str, object]:
        """All but the long lists."""
        return {
            "schema": SCHEMA,
            "created": self.created,
            "lacuna_version": self.lacuna_version,
            "command": self.command,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "fault": self.fault,
            "machine": self.machine,
            "nic": self.nic,
            **({"peer": self.peer} if self.peer else {}),
            "methods": self.methods,
            "errors": self.errors,
            "skips": [{**vars(skip), "cells": cells} for skip, cells in self.skips.items()],
            "unmeasured": self.unmeasured,
        }

    @property
    def clock_us(self) -> float:
        """By how much one-way times may be wrong, in most cells; 0 where both processes have one clock."""
        return median(look.conditions.clock_us for look in self.looks) if self.looks else 0.0


class Guide(Run):
    """A run over the grid and the layouts of applications; guide.json."""


def read_guide(path: Path) -> Guide:
    """A file of an earlier version lacks what came later, and is read without it. Errors: OSError; SchemaError, which
    names the file."""
    try:
        said = parsed(path.read_bytes())
        if member(said, "schema", "guide") != SCHEMA:
            raise SchemaError(f"the file has schema {said['schema']}, this command reads {SCHEMA}")
        lists = {
            "rows": _unflattened(said, "rows", "subject"),
            "looks": _unflattened(said, "looks", "subject", "conditions"),
            "repeats": _unflattened(said, "repeats", "subject"),
            "skips": {},  # a reader of files has no use for them
        }
        return read(Guide, {**said, **lists}, "guide")
    except SchemaError as e:
        raise SchemaError(f"{path} is no guide.json: {e}") from e


def _unflattened(said: Mapping[str, Any], name: str, *parts: str) -> list[dict[str, Any]]:
    """The opposite of flat(). What is no part's member is passed over where the part is read."""
    items = read(list[dict[str, Any]], said.get(name, []), f"guide.{name}")
    return [{**item, **dict.fromkeys(parts, item)} for item in items]
