"""What the terminal shows: this machine's guide as tables, the same with colours, without, and in a pipe."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from lacuna.guide.contests import Contest, Grid, censored, contests, ddtbench, grids
from lacuna.guide.noise_check import check_noise
from lacuna.guide.rules import derive, honesty
from lacuna.guide.run_record import Guide, Run
from lacuna.report.describe import cells, facts, methods, paths, rule_table
from lacuna.report.palette import ink
from lacuna.report.row_tables import RowTable, fact_grid
from lacuna.units import bytes_text, gain_text, us_text
from lacuna.worker.devices import Devices, Providers
from lacuna.worker.hardware import EMULATED
from lacuna.worker.records import BASELINE, BY_HAND, Hello, Row

_LABEL_WIDTH = 9
_CELL_WIDTH = 14
_ONE_LINE = 112
_TWO_LINES = 72
"""From so many columns on the DDTBench table has one line for each layout, or names the next best method."""

_ENOUGH_LAYOUT = 26
_NARROWEST_LAYOUT = 8
"""A layout's name gets at least so many columns, and so many before the gaps between columns grow."""


def show(console: Console, guide: Guide) -> None:
    """Prints the whole result of a run."""
    for part in _tables(contests(guide)):
        console.print(part)
        console.print()
    for note in notes(guide):
        console.print(note)


def _tables(all_contests: Sequence[Contest]) -> Iterator[RenderableType]:
    found = grids(all_contests)
    yield from map(GridTable, found)
    if found:
        legend = (
            f"Each cell: the fastest method, its path, and how many times faster it is than {BASELINE} (the better "
            "of two loops, at its best path). ~ the best two cannot be told apart."
        )
        yield Text(legend, style="dim")
    rules = [rule for grid in found if (rule := derive(grid))]
    for rule in sorted(rules, key=lambda rule: not rule.trusted):
        if rule.trusted:
            title = Text(f"In short: {rule.grid.title}", style="bold")
            yield Group(title, rule_table(rule).on_terminal(), Text(f"It is {honesty(rule)}", style="dim"))
        else:
            yield Text(f"No simple rule for: {rule.grid.title}. The nearest is {honesty(rule)} Use the table.")
    if layouts := ddtbench(all_contests):
        yield DdtbenchTable(layouts)


class GridTable:
    """Block size by block count. As many columns as fit stand side by side; the rest follows below."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitting = max(1, (options.max_width - _LABEL_WIDTH) // (_CELL_WIDTH + 1))
        counts = self._grid.counts
        for first in range(0, len(counts), fitting):
            if first == 0:
                yield Text(f"Fastest method: {self._grid.title}", style="bold")
            yield self._table(counts[first : first + fitting])

    def _table(self, counts: Sequence[int]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 0), show_edge=False)
        table.add_column("block", justify="right", width=_LABEL_WIDTH - 1, no_wrap=True)
        for count in counts:
            noun = "block" if count == 1 else "blocks"
            table.add_column(f"{count} {noun}", width=_CELL_WIDTH, no_wrap=True)
        for block in self._grid.blocks:
            row = [_grid_cell(self._grid.cells.get((block, count))) for count in counts]
            table.add_row(bytes_text(block), *row)
        return table


def _grid_cell(contest: Contest | None) -> Text:
    if contest is None:
        return Text("-", style="dim")
    best = contest.best
    if best is None:
        return Text("all censored" if contest.censored else "-", style="dim")
    gain = contest.gain(best)
    tail = f" {gain_text(gain)}" if gain else ""
    return Text.assemble(
        (best.method, f"bold {ink(best.method).terminal}"), f"\n {best.path}{tail}", " ~" * contest.tied
    )


class DdtbenchTable:
    """The best of each layout beside the next method and the baseline: a line each, or two where there is less room.
    The report has every method's number."""

    def __init__(self, layouts: Sequence[Contest]) -> None:
        self._layouts = layouts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        one_line, runners_up = options.max_width >= _ONE_LINE, options.max_width >= _TWO_LINES
        show = _named_and_timed if one_line else _named_over_timed
        time = ["µs"] if one_line else []
        over = "gain"
        head = ["payload", "blocks", "best", *time, *(["next method", *time] if runners_up else []), "by hand", over]
        rows = [
            (
                bytes_text(c.subject.payload_bytes),
                f"{c.subject.block_count:,}",
                *show(c.best),
                *(show(_after(c)) if runners_up else ()),
                _by_hand(c),
                _gain(c),
            )
            for c in self._layouts
        ]
        # Rich would cut all columns alike; here the layouts' names give way, not the numbers.
        others = sum(max(map(_width, column)) + 1 for column in zip(head, *rows, strict=True))
        airy = options.max_width - others - len(head) - 1 >= _ENOUGH_LAYOUT
        room = max(_NARROWEST_LAYOUT, options.max_width - others - (len(head) + 1) * airy)
        table = Table(box=box.SIMPLE_HEAD, padding=(0, int(airy), 0, 0), show_edge=False)
        table.add_column("layout", no_wrap=True, overflow="ellipsis", max_width=room)
        for name in head:
            table.add_column(name, justify="left" if name in ("best", "next method") else "right", no_wrap=True)
        for contest, cells_of_row in zip(self._layouts, rows, strict=True):
            name = contest.subject.layout
            table.add_row(name if one_line else name.replace(" ", "\n", 1), *cells_of_row)
        yield Text("DDTBench layouts, warm caches: one-way time in µs of methods at their best paths", style="bold")
        yield table


def _width(cell: str | Text) -> int:
    return max(map(cell_len, str(cell).splitlines()), default=0)


def _gain(contest: Contest) -> str:
    gain = contest.gain(contest.best)
    return (gain_text(gain) if gain else "") + (" ~" if contest.tied else "  ")


def _after(contest: Contest) -> Row | None:
    """The fastest row of another method than the best one's."""
    best = contest.best
    return next((row for row in contest.ranking if best and row.method != best.method), None)


def _name(row: Row, between: str) -> Text:
    return Text.assemble((row.method, ink(row.method).terminal), f"{between}{row.path}")


def _named_and_timed(row: Row | None) -> tuple[Text, Text]:
    return (_name(row, "/"), Text(us_text(row.latency_us))) if row else (Text("-", style="dim"), Text())


def _named_over_timed(row: Row | None) -> tuple[Text]:
    return (_name(row, "\n").append(f" {us_text(row.latency_us)}"),) if row else (Text("-", style="dim"),)


def _by_hand(contest: Contest) -> Text:
    if contest.by_hand is None:
        return Text("cens." if any(r.method in BY_HAND for r in contest.censored) else "-", style="dim")
    return Text(us_text(contest.by_hand.latency_us))


def notes(guide: Run) -> list[Text]:
    """What a reader must know about the run besides its numbers."""
    lines = []
    if guide.nic.emulated:
        lines.append(Text(EMULATED, "bold yellow"))
    if guide.clock_us:
        lines.append(
            Text(f"Two clocks, set by messages: a one-way time may be wrong by {us_text(guide.clock_us)} µs.", "yellow")
        )
    if guide.fault:
        lines.append(Text(f"A fault was planted to test the guide: {guide.fault}. Do not use this.", "bold red"))
    noise = check_noise(guide.looks)
    lines += [Text(f"Note: {warning}", "yellow") for warning in noise.warnings] if noise else []
    if groups := censored(guide):
        who = ", ".join(f"{g.method}/{g.path} in {cells(g.cells)}" for g in groups)
        fastest, slowest = min(g.fastest_us for g in groups), max(g.slowest_us for g in groups)
        lines.append(
            Text(
                f"Censored: {who}: one transfer took {fastest / 1e3:.3g} to {slowest / 1e3:.3g} ms, "
                "which was hopeless. See the report."
            )
        )
    if guide.skips:
        who = ", ".join(sorted({f"{s.method}/{s.path}" for s in guide.skips}))
        lines.append(Text(f"Not possible in some cells: {who}. The report names the limits."))
    if guide.unmeasured:
        lines.append(Text(f"Left out for time: {cells(len(guide.unmeasured))} of the plan. --budget gives more."))
    return lines


def show_info(
    console: Console,
    hello: Hello,
    found: Devices,
    providers: Providers,
    untold: str,
    shared: Mapping[int, tuple[int, int]],
) -> None:
    """Prints what the worker can do here, the RDMA devices and libfabric's providers. `untold`: why the kernel does not
    tell of freed memory, or "". `shared`: bytes that a rank shares at most, and besides for boards of collectives, by
    how many ranks its node has."""
    of_ranks = ", ".join(f"{most >> 20} MiB of {ranks}" for ranks, (most, _) in shared.items())
    of_boards = ", ".join(f"{boards >> 20} MiB of {ranks}" for ranks, (_, boards) in shared.items())
    about = [
        *facts(hello.machine, hello.nic),
        ("registrations", registrations_text(untold)),
        ("shared memory", f"of each rank of a node, at most: {of_ranks} (LACUNA_SHARED_BYTES)"),
        ("boards", f"of an MPI program's collectives besides, of each rank: {of_boards}"),
    ]
    for part in (fact_grid(about), paths(hello.nic).on_terminal(), methods(hello.methods).on_terminal()):
        console.print(part)
        console.print()
    _show_each(console, "RDMA device", "RDMA devices", found)
    _show_each(console, "Provider of libfabric", "Providers of libfabric", providers)


def _show_each(console: Console, kind: str, kinds: str, found: Devices | Providers) -> None:
    if not found.list:
        console.print(Text.assemble((f"{kinds}: ", "bold"), found.none or "none"), soft_wrap=True)
        return
    for each in found.list:
        console.print(Text(f"{kind}: --nic {shlex.quote(each.nic)}", style="bold"))
        console.print(fact_grid(((f"  {subject}", words) for subject, words in each.facts()), style=""))
        console.print()


def show_gpus(console: Console, gpus: list[dict[str, Any]], no_gpus: str | None) -> None:
    """Prints the GPUs, or why there are none."""
    console.print()
    if no_gpus:
        console.print(Text(f"No GPU: {no_gpus}"))
        return
    rows = [
        (gpu["name"], gpu["model"], gpu["driver"], str(gpu["processors"]), f"{gpu['memory_bytes'] / 2**30:.0f} GiB")
        for gpu in gpus
    ]
    console.print(RowTable(("GPU", "model", "CUDA", "processors", "memory"), rows, texts=5).on_terminal())


def registrations_text(untold: str) -> str:
    """What ends a registration where a NIC pins memory (docs/guide/registration.md)."""
    if untold:
        return f"end with their transfer, or with a handle, where a NIC pins memory: {untold}"
    return "stay where a NIC pins memory: the kernel tells of freed memory (userfaultfd)"
