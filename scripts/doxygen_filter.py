#!/usr/bin/env python3
"""Makes doxygen's comments of lacuna.h's plain ones, so that the reference has them: doxygen calls it for each header.

    scripts/doxygen_filter.py FILE

A comment of its own lines describes the declarations that follow it up to the next empty line. A comment behind a
declaration describes that. `--- title ---` begins a group of functions. Comments in doxygen's form stay as they are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_COMMENT = re.compile(r"(?P<before>^[^\n]*?)/\*(?P<text>(?!\*)(?:(?!\*/).)*)\*/", re.DOTALL | re.MULTILINE)
_TYPEDEF = re.compile(r"^typedef (?P<kind>enum|struct) (?P<name>\w+) \{(?P<body>[^}]*)\} (?P=name);", re.MULTILINE)
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
        name = title["title"].strip()
        return f"/**@}}*/\n/** @name {name[:1].upper()}{name[1:]}\n{_plain(title['text'])}@{{ */"
    return f"{before}/**{_plain(text)}*/"


def _tagged(match: re.Match[str]) -> str:
    """A type without its typedef: C++'s pages would have each one twice."""
    return f"{match['kind']} {match['name']} {{{match['body']}}};"


def main() -> None:
    source = _COMMENT.sub(_doxygen, Path(sys.argv[1]).read_text())
    source = source.replace("/**", "/** @file\n", 1).replace("/**@}*/", "", 1)  # no group ends before the first
    source = _TYPEDEF.sub(_tagged, source)
    end = source.rindex("#ifdef __cplusplus")
    print(source[:end] + "/**@}*/\n" + source[end:])


if __name__ == "__main__":
    main()
