"""Tables of the ways of messages between ranks that share memory: which is the fastest at which size (`lacuna guide`),
and what a message would do (`lacuna explain`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lacuna.units import bytes_text, us_text
from lacuna.worker.messages import AXES, BYTES, FORMS, RUNS


def fastest(messages: dict[str, Any], form: str, size: int, run: int) -> str:
    """The way that took least in a cell of a profile's member `messages`; empty where there is no such cell."""
    times = {}
    for way, sheet in messages["ns"][form].items():
        axes = AXES[way]
        if size in axes["bytes"] and run in axes["runs"]:
            ns = sheet[axes["bytes"].index(size) * len(axes["runs"]) + axes["runs"].index(run)]
            if ns > 0:
                times[way] = ns
    return min(times, key=times.__getitem__, default="")


def show(console: Console, messages: dict[str, Any]) -> None:
    """A line of each form and run length, a column of each size."""
    console.print(Text("Messages between ranks that share memory: the fastest way", style="bold"))
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("runs of")
    for size in BYTES:
        table.add_column(bytes_text(size))
    for row in _rows(messages):
        table.add_row(*row)
    console.print(table)


def _rows(messages: dict[str, Any]) -> Iterator[list[str]]:
    for form in FORMS:
        for run in RUNS:
            name = bytes_text(run) + (", listed" if form == "listed" else "")
            yield [name, *(fastest(messages, form, size, run) for size in BYTES)]


def show_expected(console: Console, found: dict[str, Any]) -> None:
    """What `lacuna._core.message_ways` says: the chosen way, and all others beside it."""
    if not found:
        return
    origin = "as measured here" if found["file"] else "by usual times: `lacuna guide` measures them"
    console.print()
    console.print(Text(f"Sent to a rank that shares memory ({origin})", style="bold"))
    if found["forced"] not in (None, found["chosen"]):
        console.print(Text(f"{found['forced']} is forced, but cannot be"))
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("way")
    table.add_column("µs", justify="right")
    measured = any("measured_us" in of for of in found["ways"].values())
    if measured:
        table.add_column("measured", justify="right")
    table.add_column("what happens, or why it cannot be")
    for way, of in found["ways"].items():
        chosen = way == found["chosen"]
        mark = ("forced" if found["forced"] == way else "chosen") if chosen else ""
        times = [us_text(of[key]) if key in of else "-" for key in ("us", *(["measured_us"] if measured else []))]
        table.add_row(mark, way, *times, of.get("refused", of["summary"]))
    console.print(table)
