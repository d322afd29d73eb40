"""What one run learned, as it is kept in guide.json and bench.json, and read from there again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Self

from lacuna.worker.fields import Fields, SchemaError
from lacuna.worker.records import SCHEMA, Conditions, Failure, Machine, Method, Nic, Peer, Row, Skip, Subject


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
    number: int
    """The second look at a cell comes after all first ones."""
    at_seconds: float
    conditions: Conditions
    left_out: tuple[LeftOut, ...] = ()
    counts: bool = True
    """Whether the rows have it: a disturbed look does not count where there is a quiet one."""

    def to_json(self) -> dict[str, object]:
        flat = asdict(self)
        subject: dict[str, object] = flat.pop("subject")
        conditions: dict[str, object] = flat.pop("conditions")
        return {**subject, **flat, **conditions}

    @staticmethod
    def read(f: Fields) -> Look:
        return Look(
            Subject.read(f),
            f.whole("number"),
            f.number("at_seconds"),
            Conditions.read(f),
            tuple(LeftOut(x.text("method"), x.text("path"), x.number("behind")) for x in f.each("left_out")),
            f.flag("counts"),
        )


@dataclass(frozen=True)
class Repeat:
    """A cell that was looked at twice: what either look called the best, and how far the two are apart."""

    subject: Subject
    first: str
    second: str
    apart: float
    """How many times as long the first look's best took in the second look as that look's own best."""
    first_us: float
    second_us: float
    """The first look's best in both looks."""

    def to_json(self) -> dict[str, object]:
        flat = asdict(self)
        subject: dict[str, object] = flat.pop("subject")
        return {**subject, **flat}

    @staticmethod
    def read(f: Fields) -> Repeat:
        return Repeat(
            Subject.read(f),
            f.text("first"),
            f.text("second"),
            f.number("apart"),
            f.positive("first_us"),
            f.positive("second_us"),
        )


@dataclass
class Run:
    """Everything one run of the worker learned. Its JSON is this, written down."""

    lacuna_version: str
    created: str
    command: str
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
    peer: Peer | None = None
    """The other machine; None where both processes were on one."""

    def to_json(self) -> str:
        """The text of the file: readable, and one row to a line, for grep and diff."""
        head = json.dumps(self.head(), indent=1).removesuffix("\n}")
        parts = {
            "looks": [look.to_json() for look in self.looks],
            "repeats": [repeat.to_json() for repeat in self.repeats],
            "rows": [row.to_json() for row in self.rows],
        }
        lists = [
            f' "{name}": [\n' + ",\n".join(f"  {json.dumps(item)}" for item in items) + "\n ]"
            for name, items in parts.items()
        ]
        return f"{head},\n" + ",\n".join(lists) + "\n}\n"

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
            "machine": asdict(self.machine),
            "nic": asdict(self.nic),
            **({"peer": asdict(self.peer)} if self.peer else {}),
            "methods": [asdict(m) for m in self.methods],
            "errors": [asdict(e) for e in self.errors],
            "skips": [{**asdict(skip), "cells": cells} for skip, cells in self.skips.items()],
            "unmeasured": self.unmeasured,
        }

    @property
    def clock_us(self) -> float:
        """By how much one-way times may be wrong, in most cells; 0 where both processes have one clock."""
        return median(look.conditions.clock_us for look in self.looks) if self.looks else 0.0

    @classmethod
    def read(cls, f: Fields) -> Self:
        """Errors: SchemaError. A file of an earlier version lacks what came later, and is read without it."""
        if f.whole("schema") != SCHEMA:
            raise SchemaError(f"the file has schema {f.whole('schema')}, this command reads {SCHEMA}")

        run = cls(
            f.text("lacuna_version"),
            f.text("created"),
            f.text("command"),
            Machine.read(f.inside("machine")),
            Nic.read(f.inside("nic")),
            tuple(Method.read(m) for m in f.each("methods")),
        )
        run.rows = [Row.kept(row, Subject.read(row)) for row in f.each("rows")]
        run.looks = [Look.read(item) for item in f.each("looks")] if "looks" in f else []
        run.repeats = [Repeat.read(item) for item in f.each("repeats")] if "repeats" in f else []
        run.unmeasured = list(f.texts("unmeasured"))
        run.seconds = f.number("seconds")
        run.interrupted = f.flag("interrupted")
        run.peer = Peer.read(f.inside("peer")) if "peer" in f else None
        return run


class Guide(Run):
    """A run over the grid and the layouts of applications; guide.json."""


def read_guide(path: Path) -> Guide:
    """Errors: OSError; SchemaError, which names the file."""
    try:
        return Guide.read(Fields(json.loads(path.read_text(encoding="utf-8")), "the guide"))
    except (SchemaError, json.JSONDecodeError, UnicodeDecodeError) as e:
        raise SchemaError(f"{path} is no guide.json: {e}") from e
