"""Whether a page closes each tag that it opens."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "br", "wbr"}


class Balance(HTMLParser):
    """Fails on a tag that is closed out of order or never."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
