"""All sections in the paper's order; paper.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from lacuna.bench.methods.experiments import EXPERIMENTS
from lacuna.paper.fft_runs import Row
from lacuna.paper.fit import Step
from lacuna.paper.section import Finding, Section
from lacuna.paper.sections import figures_of_paper, figures_of_report, policies, questions, table4_findings
from lacuna.paper.sections.study import Study, section
from lacuna.paper.simulator import Simulator

Make = Callable[[Simulator, Step], Section]


def _plain(make: Callable[[Simulator], Section]) -> Make:
    return lambda simulator, _: make(simulator)


def _study(study: Study) -> Make:
    return lambda simulator, _: section(study, simulator)


@dataclass(frozen=True)
class Chapter:
    """One experiment, by the name of its subcommand."""

    name: str
    title: str
    make: Make


def _chapters() -> list[Chapter]:
    titles = {e.id: e.title for e in EXPERIMENTS}
    studied = {
        s.id: Chapter(s.id.lower(), titles[s.id], _study(s))
        for s in (*figures_of_paper.STUDIES, *figures_of_report.STUDIES)
    }
    figures = [chapter for which, chapter in studied.items() if which.startswith("F")]
    report = [chapter for which, chapter in studied.items() if which.startswith("R")]
    report.insert(1, Chapter("r5.2.2", "pack against sgrs, two-sided", _plain(figures_of_report.r522)))
    return [
        *figures,
        Chapter("t3", "the guide: Table 3, and a better one", _plain(questions.guide)),
        Chapter("table4", "latency by block size and count, with the fit's errors", table4_findings.section),
        Chapter(
            "texts", "where the paper's text and its own table differ (items 2 to 4)", _plain(table4_findings.texts)
        ),
        Chapter("variants", "why keys for many blocks collapse: two causes (item 1)", table4_findings.variants),
        Chapter("constant", "what a receiver costs (item 5)", _plain(questions.constant)),
        Chapter("overlap", "copies that overlap the wire (item 6)", _plain(questions.overlap)),
        Chapter("unequal", "sgrs with other lists on either side (item 7)", _plain(questions.unequal_lists)),
        *report,
        Chapter("s2", "SGRS against Multi-W on PCI-X, with an alltoall (2005)", _plain(questions.s2)),
        Chapter("s4", "four policies of registration (2006)", _plain(policies.s4)),
        Chapter("alltoall", "alltoall with vector types, 4 to 256 ranks", _plain(questions.alltoall)),
        Chapter("what-if", "NICs that are not there", _plain(questions.what_if)),
    ]


CHAPTERS = _chapters()
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
    def findings(self) -> list[Finding]:
        return [f for s in self.sections for f in s.findings]

    def to_json(self) -> str:
        data = {s.id: s.data for s in self.sections}
        members: dict[str, object] = {
            "schema": 1,
            "lacuna_version": self.version,
            "command": self.command,
            "table4": data.get("Table 4"),
            "findings": [f.to_json() for f in self.findings],
            "guide": data.get("T3"),
            "what_if": data.get("What if", {}),
            "fft": [row.to_json() for row in self.fft],
            "errors": self.errors,
            "left_out": self.left_out,
            "sections": [
                {
                    "id": s.id,
                    "title": s.title,
                    "conditions": s.conditions,
                    "profile": s.profile,
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
        return json.dumps(members, indent=1) + "\n"
