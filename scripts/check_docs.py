#!/usr/bin/env python3
"""Checks the documentation's text: links, anchors, length of pages and lines, and names of variables and of files.

    scripts/check_docs.py

Prints every finding as `file:line: what` and exits with 1 if there is one. `make docs` checks more: it builds the site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MOST_LINES = {"README.md": 130, "CONTRIBUTING.md": 100, "docs/reference/glossary.md": 80}
WIDTH = 120
GENERATED = {DOCS / "reference" / "commands.md"}
"""By scripts/docs.py: links may lead there."""
VARIABLES = DOCS / "reference" / "variables.md"
SOURCES = ("lacuna", "python/lacuna", "bench", "tools")
FOR_TESTS = re.compile(r"LACUNA_(TEST_|FUZZ_|TIER|SHARD|ATTACK_)")

_LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\((?P<to>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (?P<text>.*)$")
_VARIABLE = re.compile(r"\"(LACUNA_[A-Z0-9_]+)\"")
_FILE = re.compile(r"`((?:lacuna|scripts|tests|bench|tools|examples|packaging)/[\w/.-]+\.\w+)`")


class Line(NamedTuple):
    number: int
    text: str
    fenced: bool


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def lines_of(page: Path) -> Iterator[Line]:
    fenced = False
    for number, text in enumerate(page.read_text().splitlines(), 1):
        if text.lstrip().startswith("```"):
            fenced = not fenced
            yield Line(number, text, True)
        else:
            yield Line(number, text, fenced)


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = (_HEADING.match(line.text) for line in lines_of(page) if not line.fenced)
    texts = (re.sub(r"[^\w\- ]", "", heading["text"].lower()) for heading in headings if heading)
    return {text.strip().replace(" ", "-") for text in texts}


def bad_links(page: Path) -> Iterator[str]:
    for line in lines_of(page):
        for link in _LINK.finditer(line.text) if not line.fenced else ():
            to, _, anchor = link["to"].partition("#")
            if to.startswith(("http:", "https:")):
                continue
            target = (page.parent / to).resolve() if to else page
            if target not in GENERATED and not target.exists():
                yield f"{line.number}: the link to {link['to']} leads nowhere"
            elif anchor and target.suffix == ".md" and target not in GENERATED and anchor not in anchors_of(target):
                yield f"{line.number}: {link['to']} has no such heading"


def long_lines(page: Path) -> Iterator[str]:
    for line in lines_of(page):
        free = line.fenced or line.text.lstrip().startswith(("|", "!["))
        if not free and len(line.text) > WIDTH:
            yield f"{line.number}: {len(line.text)} characters; {WIDTH} at most"


def missing_files(page: Path) -> Iterator[str]:
    """The log of what was tried may name files that are gone."""
    if page.is_relative_to(DOCS / "notes"):
        return
    for line in lines_of(page):
        for name in _FILE.findall(line.text) if not line.fenced else ():
            if not (ROOT / name).exists():
                yield f"{line.number}: there is no {name}"


def bad_variables() -> Iterator[str]:
    files = (f for folder in SOURCES for f in (ROOT / folder).rglob("*") if f.suffix in {".cpp", ".hpp", ".py", ".c"})
    used = {name for f in files for name in _VARIABLE.findall(f.read_text())}
    used = {name for name in used if not FOR_TESTS.match(name)}
    told = {name for name in re.findall(r"`(LACUNA_[A-Z0-9_]+)`", VARIABLES.read_text()) if not FOR_TESTS.match(name)}
    for name in sorted(used - told):
        yield f"{name} is not explained"
    for name in sorted(told - used):
        yield f"{name} is in no source"


def main() -> int:
    findings = [
        f"{page.relative_to(ROOT)}:{finding}"
        for page in pages()
        for check in (bad_links, long_lines, missing_files)
        for finding in check(page)
    ]
    changes = ROOT / "CHANGELOG.md"
    findings += [f"{changes.name}:{finding}" for check in (bad_links, long_lines) for finding in check(changes)]
    for name, most in MOST_LINES.items():
        count = len((ROOT / name).read_text().splitlines())
        if count > most:
            findings.append(f"{name}: {count} lines; {most} at most")
    findings += [f"{VARIABLES.relative_to(ROOT)}: {finding}" for finding in bad_variables()]
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
