"""The words of a layout's text, one after the other, and errors that point at them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import whitespace
from typing import NoReturn, TypeVar

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted> "[^"]*" | '[^']*' )
      | (?P<file> [^\s,()\[\]'"=]+?\.npy (?=[\s,()\[\].]|$) )
      | (?P<number> [+-]?\d+(?:_\d+)* (?![\w.]) )
      | (?P<name> [A-Za-z_]\w* )
      | (?P<mark> \.\.\. | \.T\b | [()\[\],:=] )
      | (?P<end> $ )
      )""",
    re.VERBOSE | re.ASCII,
)
_BEFORE, _AFTER = 60, 40
"""So much of a long text is shown around an error."""

T = TypeVar("T")


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


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    at: int

    @property
    def is_file(self) -> bool:
        return self.kind in ("file", "quoted")

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else f'"{self.text.strip(chr(34))}"'


class Tokens:
    """A cursor over the tokens of a text. Raises LayoutTextError where another token is expected."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._scan())
        self._next = 0

    def _scan(self) -> Iterator[Token]:
        at, kind = 0, ""
        while kind != "end":
            found = _TOKEN.match(self._text, at)
            if found is None:
                rest = self._text[at:].lstrip(whitespace)
                self.fail(f'cannot read "{rest[:20]}"', len(self._text) - len(rest))
            kind = found.lastgroup or ""
            yield Token(kind, found[kind], found.start(kind))
            at = found.end()

    @property
    def next(self) -> Token:
        return self._tokens[self._next]

    @property
    def last(self) -> Token:
        """The one that was taken last."""
        return self._tokens[self._next - 1]

    def take(self) -> Token:
        self._next += 1
        return self.last

    def skip(self, *texts: str) -> bool:
        """Takes these tokens if all of them are next."""
        found = self._tokens[self._next : self._next + len(texts)]
        if [token.text for token in found] != list(texts):
            return False
        self._next += len(texts)
        return True

    def need(self, text: str) -> None:
        if not self.skip(text):
            self.expected(f'"{text}"')

    def source(self, first: Token) -> str:
        """The text from a token to the one that was taken last."""
        return self._text[first.at : self.last.at + len(self.last.text)]

    def number(self) -> int:
        token = self.next
        if token.kind != "number":
            self.expected("a whole number")
        value = int(token.text) if len(token.text) <= 40 else 2**63
        if not -(2**63) <= value < 2**63:
            self.fail("the number does not fit 64 bits", token)
        self.take()
        return value

    def word(self, *words: str) -> str:
        """One of these, in whatever case."""
        found = next((word for word in words if word.lower() == self.next.text.lower()), None)
        if found is None:
            self.expected(f"{', '.join(words[:-1])} or {words[-1]}")
        self.take()
        return found

    def entries(self, end: str, entry: Callable[[], T]) -> list[T]:
        """What lies between commas, up to and with the end."""
        found: list[T] = []
        while not self.skip(end):
            if found and not self.skip(","):
                self.expected(f'"," or "{end}"')
            found.append(entry())
        return found

    def expected(self, what: str) -> NoReturn:
        self.fail(f"expected {what}; found {self.next}", self.next)

    def fail(self, message: str, at: Token | int) -> NoReturn:
        raise LayoutTextError(message, self._text, at if isinstance(at, int) else at.at)
