"""All sections in the paper's order; paper.json."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from rich.text import Text

from lacuna.paper.fft_runs import Row
from lacuna.paper.section import Finding, Section
from lacuna.paper.sections import figures_of_paper, figures_of_report, policies, questions, table4_findings
from lacuna.paper.sections.study import Study, section
from lacuna.paper.simulator import Simulator
from lacuna.report.row_tables import RowTable
from lacuna.worker.protocol import written


@dataclass(frozen=True)
class Chapter:
    """One experiment, by the name of its subcommand."""

    name: str
    title: str
    make: Callable[[Simulator], Section]


def _studied(study: Study) -> Chapter:
    return Chapter(study.id.lower(), study.title, partial(section, study))


CHAPTERS = [
    *map(_studied, figures_of_paper.STUDIES),
    Chapter("t3", "the guide: Table 3, and a better one", questions.guide),
    Chapter("table4", "latency by block size and count, with the fit's errors", table4_findings.section),
    Chapter("texts", "where the paper's text and its own table differ (items 2 to 4)", table4_findings.texts),
    Chapter("variants", "why keys for many blocks collapse: two causes (item 1)", table4_findings.variants),
    Chapter("constant", "what a receiver costs (item 5)", questions.constant),
    Chapter("overlap", "copies that overlap the wire (item 6)", questions.overlap),
    Chapter("unequal", "sgrs with other lists on either side (item 7)", questions.unequal_lists),
    *map(_studied, figures_of_report.STUDIES),
    Chapter("s2", "SGRS against Multi-W on PCI-X, with an alltoall (2005)", questions.s2),
    Chapter("s4", "four policies of registration (2006)", policies.s4),
    Chapter("alltoall", "alltoall with vector types, 4 to 256 ranks", questions.alltoall),
    Chapter("what-if", "NICs that are not there", questions.what_if),
]
"""In the paper's order, then the report's, those of the older papers, and our own questions."""


@dataclass
class Results:
    version: str
    command: str
    sections: list[Section] = field(default_factory=list)
    fft: list[Row] = field(default_factory=list)
    """Of the sections that were measured on this machine's MPIs."""
    errors: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.sections or self.errors or self.left_out)

    @property
    def findings(self) -> list[Finding]:
        return [f for s in self.sections for f in s.findings]

    @property
    def table(self) -> RowTable:
        """The findings."""
        verdicts = {True: Text("holds", "green"), False: Text("does not hold", "bold red")}
        rows = [(f.id, f.statement, f.label, f.expected, f.got, verdicts[f.holds]) for f in self.findings]
        return RowTable(("id", "statement", "label", "expected", "found", ""), rows, texts=6)

    def to_json(self) -> str:
        data = {s.id: s.data for s in self.sections}
        members = {
            "schema": 1,
            "lacuna_version": self.version,
            "command": self.command,
            "table4": data.get("Table 4"),
            "findings": self.findings,
            "guide": data.get("T3"),
            "what_if": data.get("What if", {}),
            "fft": self.fft,
            "errors": self.errors,
            "left_out": self.left_out,
            "sections": [
                {
                    **{name: getattr(s, name) for name in ("id", "title", "conditions", "profile")},
                    "curves": [
                        {
                            "panel": p.title,
                            "x": p.x,
                            "y": p.y,
                            "line": line.name,
                            "paper": line.paper,
                            "points": list(zip(line.xs, line.ys, strict=True)),
                        }
                        for p in s.plots
                        for line in p.lines
                    ],
                }
                for s in self.sections
            ],
        }
        return written(members) + "\n"
