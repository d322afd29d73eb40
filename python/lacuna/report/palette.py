"""One colour for each method, the same on the terminal and on paper.

The colours are those of Okabe and Ito and of Paul Tol, which people with any kind of colour blindness can tell apart.
Nothing is said by colour alone: names stand beside it. The baseline is grey, so that colour means a gain.
"""

from __future__ import annotations

from dataclasses import dataclass

LACUNA = "#0072b2"
OTHERS = ("#d55e00", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#999933")
BY_HAND = "#9a9a9a"
"""In pictures of benches, where contenders are compared, not methods."""


def other(number: int) -> str:
    """The colour of another contender, by its number."""
    return OTHERS[number % len(OTHERS)]


@dataclass(frozen=True)
class Ink:
    paper: str
    terminal: str


_INKS = {
    "pack": Ink("#9a9a9a", "default"),
    "pack_write": Ink("#0072b2", "bright_blue"),
    "pack_pipelined": Ink("#56b4e9", "cyan"),
    "gather_write": Ink("#009e73", "green"),
    "multi_write": Ink("#d55e00", "red"),
    "sgrs": Ink("#cc79a7", "magenta"),
    "linked_write": Ink("#e69f00", "yellow"),
    "scatter_read": Ink("#999933", "blue"),
    "umr_send": Ink("#6699cc", "bright_cyan"),
    "umr_write": Ink("#aa4499", "bright_magenta"),
    "umr_read": Ink("#44aa99", "bright_green"),
    "umr_chunked": Ink("#ee8866", "bright_red"),
    "create_key": Ink("#d55e00", "red"),
    "bind_key": Ink("#009e73", "green"),
    "invalidate_key": Ink("#56b4e9", "cyan"),
}
_UNKNOWN = Ink("#c2a878", "bright_yellow")


def ink(method: str) -> Ink:
    return _INKS.get(method, _UNKNOWN)


MARKERS = {"mapped": "o", "slots": "s", "kernel": "^"}
"""The marker of each path in curves."""


def marker(path: str) -> str:
    return MARKERS.get(path, "D")


def tint(colour: str, strength: float) -> str:
    """The colour thinned with white; strength 1 is the colour itself."""
    mixed = (round(255 + (value - 255) * strength) for value in _channels(colour))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def readable_on(colour: str) -> str:
    """Black or white, whichever reads better on the colour (by relative luminance)."""
    red, green, blue = ((value / 255) ** 2.2 for value in _channels(colour))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "#ffffff"
