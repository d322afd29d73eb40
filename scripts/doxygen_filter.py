#!/usr/bin/env python3
"""Makes doxygen's comments of the plain ones of C's headers, so that the reference has them: doxygen calls it for each
header.

    scripts/doxygen_filter.py FILE

A comment of its own lines describes the declarations that follow it up to the next empty line. A comment behind a
declaration describes that. `--- title ---` begins a group of functions, and ends the one before it. Comments in
doxygen's form stay as they are.

groups() tells the groups, in order, of the page that scripts/docs.py makes of them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_COMMENT = re.compile(r"(?P<before>^[^\n]*?)/\*(?P<text>(?!\*)(?:(?!\*/).)*)\*/", re.DOTALL | re.MULTILINE)
_TYPEDEF = re.compile(r"^typedef (?P<kind>enum|struct) (?P<name>\w+) \{(?P<body>[^}]*)\} (?P=name);", re.MULTILINE)
_END = "/**@}*/\n"
"""Of a group."""
_TITLE = re.compile(r"^ --- (?P<title>.*?) ---(?P<text>.*)$", re.DOTALL)


def _plain(text: str) -> str:
    """The words of a comment, without the stars at its lines' beginnings; < and # are not doxygen's."""
    text = re.sub(r"\n[ ]*\*[ ]?", "\n", text)
    return text.replace("<", "&lt;").replace("#", "\\#")


def _doxygen(match: re.Match[str]) -> str:
    before, text = match["before"], match["text"]
    if "NOLINT" in text:
        return match[0]
    if before.strip():
        return f"{before}/**<{_plain(text)}*/"
    title = _TITLE.match(text)
    if title:
        name = _name(title["title"])
        return f"{_END}/** @defgroup {_id(name)} {name}\n{_plain(title['text'])}@{{ */"
    return f"{before}/**{_plain(text)}*/"


def _name(title: str) -> str:
    """The title without what comes after a colon, which is a remark."""
    name, _, _ = title.strip().partition(":")
    return name[:1].upper() + name[1:]


def _id(name: str) -> str:
    return "c_" + re.sub(r"\W+", "_", name.lower()).strip("_")


def groups(header: Path) -> list[tuple[str, str]]:
    """Id and title of each group of a header."""
    titles = (_TITLE.match(comment["text"]) for comment in _COMMENT.finditer(header.read_text()))
    names = [_name(title["title"]) for title in titles if title]
    return [(_id(name), name) for name in names]


def _tagged(match: re.Match[str]) -> str:
    """A type without its typedef: C++'s pages would have each one twice."""
    return f"{match['kind']} {match['name']} {{{match['body']}}};"


def main() -> None:
    source = _COMMENT.sub(_doxygen, Path(sys.argv[1]).read_text())
    source = source.replace("/**", "/** @file\n", 1)
    source = _TYPEDEF.sub(_tagged, source.replace(_END, "", 1))
    begin, bracket, end = source.rpartition("#ifdef __cplusplus\n}")
    print(begin + (_END if bracket else "") + bracket + end)


if __name__ == "__main__":
    main()
