"""A layout's text as a Python expression, and errors that point into the text.

The text is Python's grammar but for two things, which are put into its words at the same length, so that each node
of the expression is where it is in the text: names of files stand for themselves, and DDTBench's names have colons.
"""

from __future__ import annotations

import ast
import re
from typing import NoReturn

_LEXEME = re.compile(
    r"""(?P<quoted>"[^"]*"|'[^']*')
      | (?P<file>[^\s,()\[\]'"=]+?\.npy(?=[\s,()\[\].]|$))
      | (?P<number>\d+(?:_\d+)*(?![\w.]))
      | (?P<word>[A-Za-z_]\w*)
      | (?P<sign>[+-](?=\d))
      | (?P<mark>[,()\[\]=:.])
      | (?P<space>\s+)""",
    re.VERBOSE | re.ASCII,
)
_VALUES = ("quoted", "file", "number", "word")
_CLOSES = {"(": ")", "[": "]"}
_BEFORE, _AFTER = 60, 40
"""So much of a long text is shown around an error."""

MOST_NESTED = 100
"""At most so many constructors are in one another."""


class LayoutTextError(ValueError):
    """A text that is no layout. Says what is wrong, and shows where with a caret."""

    def __init__(self, message: str, text: str, at: int) -> None:
        super().__init__(f"{message}\n{_pointed(text, at)}")
        self.message = message
        self.at = at


def _pointed(text: str, at: int) -> str:
    first = at - _BEFORE if at > _BEFORE + 3 else 0
    shown = text[first : at + _AFTER]
    if len(text) > at + _AFTER:
        shown += "..."
    if first:
        shown = "..." + shown
    line = "".join(c if c.isprintable() else " " for c in shown)
    return f"  {line}\n  {' ' * (at - first + 3 * bool(first))}^"


class LayoutSource:
    """The text, and the expression that it is. Raises LayoutTextError where it is none."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._files: set[int] = set()
        words = _Words(self, text).as_python(self._files)
        try:
            self.expression = ast.parse(f"({words})", mode="eval").body
        except SyntaxError as e:
            self.expected("a value", min((e.offset or 1) - 2, len(text)))

    def start(self, node: ast.expr | ast.keyword) -> int:
        """Within the text, also of a tuple, which begins at the bracket that is put around the whole."""
        return max(node.col_offset - 1, 0)

    def end(self, node: ast.expr) -> int:
        return min((node.end_col_offset or 0) - 1, len(self._text))

    def of(self, node: ast.expr) -> str:
        """The node's text."""
        return self._text[self.start(node) : self.end(node)]

    def file(self, node: ast.expr) -> str | None:
        """The name, if the node is that of a file."""
        return self.of(node).strip("\"'") if isinstance(node, ast.Name) and self.start(node) in self._files else None

    def expected(self, what: str, at: ast.expr | int) -> NoReturn:
        place = at if isinstance(at, int) else self.start(at)
        found = _LEXEME.match(self._text, place)
        shown = f'"{found[0].strip(chr(34))}"' if found else "the end"
        self.fail(f"expected {what}; found {shown}", place)

    def fail(self, message: str, at: ast.expr | ast.keyword | int) -> NoReturn:
        raise LayoutTextError(message, self._text, at if isinstance(at, int) else self.start(at))


class _Words:
    """Goes once through the text, and refuses what no layout has."""

    def __init__(self, source: LayoutSource, text: str) -> None:
        self._source = source
        self._text = text
        self._open: list[tuple[str, bool]] = []
        """Brackets, and whether one is a subscript's."""
        self._before = ""
        """The kind of the lexeme before, or the mark that it is."""

    def as_python(self, files: set[int]) -> str:
        made, at = [], 0
        while at < len(self._text):
            found = _LEXEME.match(self._text, at)
            if found is None or (found.lastgroup == "sign" and self._before not in ("", *"([,:=")):
                self._source.fail(f'cannot read "{self._text[at : at + 20]}"', at)
            kind, word = found.lastgroup or "", found[0]
            if kind in ("quoted", "file"):
                files.add(at)
                made.append("F".ljust(len(word), "_"))
            elif kind == "space":
                made.append(" " * len(word))
            else:
                made.append("@" if word == ":" and not self._in_subscript else word)
            if kind != "space":
                self._follow(kind if kind != "mark" else word, word, at)
            at = found.end()
        if self._before == "":
            self._source.expected("a layout: a constructor, a basic type, a DDTBench name or a .npy file", at)
        if self._open:
            self._source.expected(self._end, at)
        return "".join(made)

    @property
    def _in_subscript(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    @property
    def _end(self) -> str:
        return f'"," or "{_CLOSES[self._open[-1][0]]}"' if self._open else "the end"

    def _follow(self, kind: str, word: str, at: int) -> None:
        """Checks what may follow what, and keeps the brackets."""
        of_view = self._before in ("quoted", "file", "view")
        if kind in _VALUES and self._before in (*_VALUES, ")", "]", "view"):
            self._source.expected(self._end, at)
        if kind in _CLOSES:
            self._open.append((kind, kind == "[" and of_view))
            if sum(bracket == "(" for bracket, _ in self._open) > MOST_NESTED + 1:  # range() is no constructor
                self._source.fail(f"nested more than {MOST_NESTED} times", at)
        elif kind in _CLOSES.values():
            if not self._open or _CLOSES[self._open[-1][0]] != kind:
                self._source.expected(self._end, at)
            if self._before == "," or (self._before == "[" and self._open[-1][1]):
                self._source.expected('a number, a slice or "..."' if self._open[-1][1] else "a value", at)
            kind = "view" if self._open.pop()[1] else kind
        elif word == "T" and self._before == ".":
            kind = "view"
        self._before = kind
