"""What the documents leave open: items 5 to 7, a better guide than Table 3, alltoall, other platforms, what if."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lacuna.medians import geomean
from lacuna.paper import profiles, table4
from lacuna.paper.profiles import PLATFORM_2, Profile
from lacuna.paper.runs import Row, sweep
from lacuna.paper.section import Line, Plot, Section, us
from lacuna.paper.sections import alltoall_2005
from lacuna.paper.sections.study import Panels, Study, only_panel, section
from lacuna.paper.simulator import RefusedError, Simulator, Trial, grid
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text

# --- the guide ------------------------------------------------------------------------------------------------------

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536)
COUNTS = (4, 8, 16, 32, 64, 128, 256, 512)
_MOST_PAYLOAD = 8 << 20

_IN_PLACE = ("umr_write", "linked_write", "multi_write")
WAYS = (
    *((m, "none") for m in ("pack", "pack_pipelined", "sgrs", "umr_send", "umr_chunked")),
    *((m, "flag") for m in ("pack_write", "gather_write", "scatter_read", "umr_read", *_IN_PLACE)),
    *((m, "none") for m in _IN_PLACE),
)
"""Every method, the one-sided ones with a flag; those that write in place also without one, as the paper's umr_w."""


def way_name(method: str, notify: str) -> str:
    return f"{method}, silent" if notify == "none" and method in _IN_PLACE else method


@dataclass(frozen=True, eq=False)
class Spot:
    """One block size and count: what each way takes."""

    block_bytes: int
    blocks: int
    rows: dict[str, Row]

    @property
    def label(self) -> str:
        return f"{self.blocks} x {bytes_text(self.block_bytes)}"

    def point(self) -> dict[str, object]:
        """For paper.json."""
        at = {"block_bytes": self.block_bytes, "blocks": self.blocks}
        return {**at, "fastest": self.fastest, "latency_us": self.us(self.fastest)}

    def us(self, name: str) -> float:
        return self.rows[name]["latency_us"]

    def cpu_us(self, name: str) -> float:
        return self.rows[name]["cpu_send_us"] + self.rows[name]["cpu_recv_us"]

    @property
    def fastest(self) -> str:
        return min(self.rows, key=self.us)

    @property
    def table3(self) -> str:
        """What Table 3 of the paper says, at the middle of its 60 ± 30 blocks."""
        few = self.blocks < 60
        if self.block_bytes < 128:
            return "umr_write, silent" if few else "pack"
        return "umr_write, silent" if few else "sgrs"

    def undominated(self) -> list[str]:
        """Ways of which no other is at least as good in latency and in CPU time, the fastest first."""
        kept: list[str] = []
        for name in sorted(self.rows, key=lambda n: (self.us(n), self.cpu_us(n))):
            if not kept or self.cpu_us(name) < self.cpu_us(kept[-1]) * 0.99:
                kept.append(name)
        return kept


def spots(simulator: Simulator, profile: Profile, sizes: Sequence[int] = SIZES) -> list[Spot]:
    has_keys = profile.value("limits.indirect_keys") > 0
    ways = [w for w in WAYS if has_keys or not w[0].startswith("umr")]
    where = [(b, n) for b in sizes for n in COUNTS if b * n <= _MOST_PAYLOAD]
    asked = [Trial(grid(b, n), m, notify) for b, n in where for m, notify in ways]
    rows = simulator.transfers(profile.path, asked)
    step = len(ways)
    return [
        Spot(b, n, {way_name(*w): r for w, r in zip(ways, rows[i * step : (i + 1) * step], strict=True)})
        for i, (b, n) in enumerate(where)
    ]


def guide(simulator: Simulator) -> Section:
    made = Section(
        "T3",
        "A better guide than Table 3",
        "the best of all methods for blocks of 8 B to 64 KB, 4 to 512 of them, gaps of twice the block. Silent: the "
        "receiver is not told, as with the paper's umr_w",
        PLATFORM_2,
    )
    found = spots(simulator, profiles.load(PLATFORM_2))
    losses = {s: s.us(s.table3) / s.us(s.fastest) for s in found}
    worst = max(found, key=lambda s: losses[s])
    mean = geomean(list(losses.values()))
    among = ("pack", "sgrs", "umr_send", "umr_write, silent")
    right = [s for s in found if s.us(s.table3) <= 1.05 * min(s.us(m) for m in among)]
    agreed = len(right) / len(found)
    wrong = [s for s in found if s not in right]
    made.finds(
        "Table 3's choice is the best of copy, sgrs, umr_sr and umr_w",
        "within 5 % of the best of the four at nine of ten points",
        f"at {agreed:.0%} of {len(found)} points",
        agreed >= 0.9,
        "it errs at " + ", ".join(f"{s.label} ({min(among, key=s.us)})" for s in wrong),
    )
    made.notes = [
        f"Table 3's choice takes {mean:.2f} times as long as the best of all methods on average, and "
        f"{losses[worst]:.1f} times at {worst.label}, where {worst.fastest} wins. "
        "Most of it is the flag: what a message costs its receiver beyond a write, Table 4's constant, is paid by "
        "neither a flag nor by umr_write."
    ]
    loss = _by_size(found, "What Table 3's choice takes over the fastest", lambda s: f"{losses[s]:.2f}")
    made.grids = [_latency(found), _cpu(found), loss]
    made.data = {
        "table3_loss_geomean": mean,
        "table3_loss_max": losses[worst],
        "points": [
            {
                **s.point(),
                "table3": s.table3,
                "table3_us": s.us(s.table3),
                "undominated": [{"way": w, "latency_us": s.us(w), "cpu_us": s.cpu_us(w)} for w in s.undominated()],
            }
            for s in found
        ],
    }
    return made


def _by_size(found: Sequence[Spot], title: str, cell: Callable[[Spot], str]) -> RowTable:
    rows = []
    for size in dict.fromkeys(s.block_bytes for s in found):
        here = {s.blocks: s for s in found if s.block_bytes == size}
        rows.append([bytes_text(size), *(cell(here[n]) if n in here else "" for n in COUNTS)])
    return RowTable(["block", *(f"{n} blocks" for n in COUNTS)], rows, title=title)


def _latency(found: Sequence[Spot]) -> RowTable:
    return _by_size(found, "The fastest, and its latency", lambda s: f"{s.fastest} {us(s.us(s.fastest))}")


def _cpu(found: Sequence[Spot]) -> RowTable:
    def cell(spot: Spot) -> str:
        other = spot.undominated()[-1]
        if other == spot.fastest:
            return "the same"
        return f"{other}: {spot.us(other) / spot.us(spot.fastest):.2f} x the time, {us(spot.cpu_us(other))} of CPU"

    return _by_size(found, "The least CPU time of both ends together, where that is another method", cell)


# --- items 5 to 7 ---------------------------------------------------------------------------------------------------


_SHORT_US = 17
"""Up to here the difference of two cells says something of a constant of 2 µs."""


def constant(simulator: Simulator) -> Section:
    made = Section(
        "Item 5",
        "What a receiver costs",
        "umr_sr less umr_w, where neither is so long that the noise of both is more than that",
        PLATFORM_2,
        "calibrated",
    )
    cells = {(c.block_bytes, c.blocks, c.method): c for c in table4.cells()}
    keys = [(c.block_bytes, c.blocks) for c in table4.cells() if c.method == "umr_sr" and c.paper_us < _SHORT_US]
    paper = [cells[b, n, "umr_sr"].paper_us - cells[b, n, "umr_w"].paper_us for b, n in keys]
    which = [cells[b, n, m] for b, n in keys for m in ("umr_sr", "umr_w")]
    model = table4.modelled_us(simulator, profiles.load(PLATFORM_2), None, which)
    ours = model[0::2] - model[1::2]
    made.finds(
        "umr_sr less umr_w is a constant: the receiver's work request, poll and notification",
        f"paper: median {np.median(paper):.2f} µs (cells below {_SHORT_US} µs)",
        f"{ours.min():.2f} to {ours.max():.2f} µs",
        abs(float(np.median(ours)) / float(np.median(paper)) - 1) < 0.15,
    )
    lines = []
    for size in dict.fromkeys(b for b, _ in keys):
        of_size = [i for i, (b, _) in enumerate(keys) if b == size]
        counts = [keys[i][1] for i in of_size]
        lines.append(Line(bytes_text(size), counts, [float(ours[i]) for i in of_size]))
        lines.append(Line(bytes_text(size), counts, [paper[i] for i in of_size], paper=True))
    made.plots.append(Plot("", "number of blocks", "umr_send less umr_write (µs)", lines))
    told = simulator.transfers(
        profiles.load(PLATFORM_2).path,
        [Trial(grid(1024, 16), "umr_write", n) for n in ("none", "flag", "imm")] + [Trial(grid(1024, 16), "umr_send")],
    )
    names = ("umr_write, silent", "umr_write with a flag", "umr_write with an immediate", "umr_send")
    figures = ("latency_us", "cpu_send_us", "cpu_recv_us")
    made.grids.append(
        RowTable(
            ["way", "latency", "sender's CPU", "receiver's CPU"],
            [[name, *(us(row[figure]) for figure in figures)] for name, row in zip(names, told, strict=True)],
            title="16 x 1 KB: what it costs that the receiver knows",
        )
    )
    return made


def overlap(simulator: Simulator) -> Section:
    made = Section(
        "Item 6",
        "Copies that overlap the wire",
        "the paper's copy packs, sends and unpacks one after the other; pack_pipelined does so at once, in chunks. "
        "Blocks of 16 KB with gaps of twice the block",
        PLATFORM_2,
    )
    counts = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
    ways = ("sgrs", "pack", "pack_pipelined")
    panel = sweep(simulator, profiles.load(PLATFORM_2), {n: grid(16384, n) for n in counts}, ways)
    cpus = {m: panel.both_ends(m, "cpu") for m in ways}
    share = [16384 * n / 1e3 for n in counts]

    def rates(method: str) -> list[float]:
        return [bytes_ / latency for bytes_, latency in zip(share, panel.curve(method), strict=True)]

    x, at_4_mb = "number of blocks of 16 KB", counts.index(256)
    made.plots = [
        Plot("", x, "bandwidth (GB/s)", [Line(m, counts, rates(m)) for m in ways]),
        Plot("", x, "CPU time of both ends (µs)", [Line(m, counts, cpus[m]) for m in ways]),
    ]
    inside, outside = (rates("pack_pipelined")[i] / rates("sgrs")[i] for i in (at_4_mb, -1))
    cpu = [cpus[m][at_4_mb] for m in ("pack_pipelined", "sgrs")]
    made.finds(
        "pipelined, copy reaches the wire's rate in cache and not out of it, at the price of CPU time",
        "over 0.9 of sgrs's bandwidth at 4 MB, under 0.9 at 32 MB",
        f"{inside:.2f} and {outside:.2f}; CPU at 4 MB: {us(cpu[0])} against {us(cpu[1])}",
        inside > 0.9 and outside < 0.9,
    )
    return made


def unequal_lists(simulator: Simulator) -> Section:
    made = Section(
        "Item 7",
        "sgrs with other lists on either side",
        "the documents say that both lists have to be equal. A message is a stream of bytes: both ends cut at the same "
        "positions. Every byte and every gap is compared",
        PLATFORM_2,
    )
    shapes = {"sender_coarser": 0.5, "symmetric": 1.0, "sender_finer": 4.0}
    ways = ("pack", "sgrs", "umr_send")
    path = profiles.load(PLATFORM_2).path
    rows: dict[str, list[Row]] = {m: [] for m in ways}
    refused = ""
    try:
        for m in ways:
            rows[m] = simulator.transfers(path, [Trial(grid(1024, 64) | {"shape": s}, m) for s in shapes], verify=True)
    except RefusedError as e:  # a wrong byte is one
        refused = str(e)
    made.finds(
        "SEND and RECV work with unequal lists, cut at the same byte positions",
        "the right bytes in each shape, gaps intact",
        refused or "the right bytes in each shape, gaps intact; on the model, not on hardware",
        not refused,
        refused,
    )
    if not refused:
        made.plots.append(
            Plot(
                "64 x 1 KB at the receiver",
                "blocks of the sender for each of the receiver's",
                "one-way latency (µs)",
                [Line(m, list(shapes.values()), [r["latency_us"] for r in rows[m]]) for m in ways],
            )
        )
    return made


# --- other platforms ------------------------------------------------------------------------------------------------


def s2(simulator: Simulator) -> Section:
    def judge(made: Section, panels: Panels, _: Simulator) -> None:
        panel = only_panel(panels)
        down = max(1 - panel.us("sgrs", x) / panel.us("multi_write", x) for x in panel.xs)
        made.finds(
            "SGRS against Multi-W on PCI-X: latency down by up to 62 %",
            "up to 52 to 72 %",
            f"up to {down:.0%}",
            0.52 <= down <= 0.72,
            "the abstract has this number and no sizes, and what a request costs on that NIC is an estimate of ours: "
            "it decides",
        )

    name = "infiniband-pcix-2005"
    made = section(Study("S2", name, judge, "predicted"), simulator)
    made.conditions += f". Below, an alltoall of {alltoall_2005.RANKS} ranks, by alltoallw of such columns"
    alltoall_2005.add(made, alltoall_2005.rows(profiles.load(name)))
    made.notes = [
        "Not reproduced: the abstract's bandwidth, up by up to 400 %. It takes many transfers in flight, and here "
        "there is one."
    ]
    return made


RANKS = (4, 8, 16, 32, 64, 128, 256)


def alltoall(simulator: Simulator) -> Section:
    made = Section(
        "Alltoall",
        "Alltoall with vector types, 4 to 256 ranks",
        "each rank has a NIC of its own and sends 64 blocks of 64 B to every other one, pair by pair; every byte is "
        "compared",
        PLATFORM_2,
    )
    ways = ("pack", "sgrs", "umr_send")
    trials = [Trial(grid(64, 64), m) for m in ways]
    path = profiles.load(PLATFORM_2).path
    rows = [[r["latency_us"] for r in simulator.alltoall(path, n, trials)] for n in RANKS]
    lines = [Line(m, RANKS, [r[i] for r in rows]) for i, m in enumerate(ways)]
    made.plots = [Plot("", "ranks", "time (µs)", lines)]
    each = [us(line.ys[-1] / (RANKS[-1] - 1)) for line in lines]
    made.finds(
        "the order of the methods is that of one pair, and time grows with the ranks",
        "linear from 16 ranks on",
        f"256 ranks: {', '.join(f'{m} {t} a step' for m, t in zip(ways, each, strict=True))}",
        all(0.8 < (line.ys[-1] / line.ys[2]) / (255 / 15) < 1.25 for line in lines),
    )
    return made


def what_if(simulator: Simulator) -> Section:
    made = Section(
        "What if",
        "The same guide for NICs that are not there",
        "without UMR, which was the report's question about the 1822; and 400 Gb/s on PCIe 5, all of whose numbers are "
        "assumed: what it says is where the borders move",
        f"{PLATFORM_2}, what-if-no-umr, what-if-400g",
    )
    here = spots(simulator, profiles.load(PLATFORM_2))
    without = spots(simulator, profiles.load("what-if-no-umr"))
    fast = spots(simulator, profiles.load("what-if-400g"))
    entry = profiles.load("what-if-400g").value("nic.entry_ns")
    lost = {a: b.us(b.fastest) / a.us(a.fastest) for a, b in zip(here, without, strict=True)}
    worst = max(lost, key=lambda spot: lost[spot])
    mean = geomean(list(lost.values()))
    made.finds(
        "UMR in the 1822 would gain something (the report's conclusion)",
        "without it the best method takes at least 5 % longer on average",
        f"{mean - 1:.0%} on average; {lost[worst]:.2f} times at most, {worst.label}",
        mean >= 1.05,
        "where both sides' layouts are equal, sgrs, pack_write and gather_write with a flag do nearly all that keys "
        "do. What the report has in mind, long lists in one request with unequal sides, is where keys collapse",
    )
    made.finds(
        "400 Gb/s on PCIe 5 move the border between copy and sgrs to smaller blocks",
        "sgrs passes pack with 64 blocks at smaller ones than today",
        f"today {_passes(here)}, at 400 Gb/s {_passes(fast)}",
        _passing(fast) < _passing(here),
        f"what decides is how fast entries are fetched, {entry:g} ns here, against copies that are four times as "
        "fast: not the wire",
    )
    made.grids = [_latency(fast)]
    made.data = {
        "no_umr": {"loss_geomean": mean, "loss_max": lost[worst]},
        "nic_400g": {"points": [s.point() for s in fast]},
    }
    return made


def _passing(found: Sequence[Spot]) -> float:
    """The smallest blocks with which sgrs is faster than pack, at 64 of them."""
    return min((s.block_bytes for s in found if s.blocks == 64 and s.us("sgrs") < s.us("pack")), default=float("inf"))


def _passes(found: Sequence[Spot]) -> str:
    size = _passing(found)
    return "never" if size == float("inf") else bytes_text(int(size))
