"""What an experiment on the model leaves behind: findings, pictures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from lacuna.paper.profiles import Label
from lacuna.report.row_tables import RowTable

FindingLabel = Label | Literal["measured"]
"""What decides it on the model: a fit to Table 4, a published constant, or neither, and small estimates beside them
all. Or a measurement on this machine."""


@dataclass(frozen=True)
class Finding:
    """A sentence of the documents, or a question of ours, and what the model says."""

    id: str
    statement: str
    label: FindingLabel
    expected: str
    got: str
    holds: bool
    reason: str = ""
    """Why it does not hold, or what it hangs on."""


@dataclass(frozen=True)
class Line:
    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    paper: bool = False
    """Of the paper: drawn as open points beside the model's line of the same name."""
    dashed: bool = False


@dataclass(frozen=True)
class Plot:
    title: str
    x: str
    y: str
    lines: Sequence[Line]
    bytes_on_x: bool = False


@dataclass
class Section:
    id: str
    title: str
    conditions: str
    profile: str
    """Of the modelled NIC; empty: measured on this machine."""
    label: FindingLabel = "predicted"
    """Of all findings that have no other one."""
    findings: list[Finding] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    grids: list[RowTable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: dict[str, object] = field(default_factory=dict)
    """Numbers for paper.json that no finding holds."""

    def finds(
        self,
        statement: str,
        expected: str,
        got: str,
        holds: bool,
        reason: str = "",
        *,
        of: str = "",
        label: FindingLabel | None = None,
    ) -> None:
        """Adds a finding. `of`, `label`: its id and label, where they are not the section's."""
        why = reason or ("" if holds else "the model does not say why")
        self.findings.append(Finding(of or self.id, statement, label or self.label, expected, got, bool(holds), why))


def us(value: float) -> str:
    return f"{value:,.3g} µs" if value < 1000 else f"{value:,.0f} µs"
