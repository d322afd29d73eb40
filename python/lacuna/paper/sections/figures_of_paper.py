"""F17 to F25: the paper's experiments that a NIC decides."""

from __future__ import annotations

from lacuna.bench.methods.experiments import EXPERIMENTS
from lacuna.paper import profiles, runs, table4
from lacuna.paper.profiles import PLATFORM_2
from lacuna.paper.runs import PLAIN
from lacuna.paper.section import Section, us
from lacuna.paper.sections.study import BANDWIDTH, SPLIT, Panels, Study, from_on, only_panel
from lacuna.paper.simulator import Simulator
from lacuna.units import bytes_text

_CONSTANT = (
    "umr_write starts 2 to 3 µs ahead, since its receiver posts and polls nothing (item 5: a constant 2.2 to 2.5 µs in "
    "Table 4)"
)


def judge_f17a(made: Section, panels: Panels, simulator: Simulator) -> None:
    found = only_panel(panels).first("sgrs", "pack")
    profile = profiles.load(PLATFORM_2)
    experiment = next(e for e in EXPERIMENTS if e.id == "F17a")
    others = {n: runs.run(simulator, profile, experiment, {"copy.far_block_ns": float(n)}) for n in (20, 50, 75)}
    hangs = ", ".join(f"{ns} ns: {from_on(only_panel(o).first('sgrs', 'pack'))}" for ns, o in others.items())
    made.finds(
        "at a gap of 45 MB copy wins below 128 B, sgrs above",
        "sgrs faster from 128 B on (64 to 256 B)",
        f"sgrs faster {from_on(found)}",
        found is not None and 64 <= found <= 256,
        "hangs on what a block that misses the caches and the TLB costs the CPU, "
        f"{profile.value('copy.far_block_ns'):g} ns here, read off F19; Table 4 does not contain it. With {hangs}",
    )


def _f17b(made: Section, panels: Panels, _: Simulator) -> None:
    panel = only_panel(panels)
    x = panel.xs[-1]
    ratio = panel.us("pack", x) / panel.us("sgrs", x)
    made.finds(
        "at 1 MB copy takes 3.2 times as long as sgrs",
        "3.2 (2.6 to 4.0)",
        f"{ratio:.2f}",
        2.6 <= ratio <= 4.0,
        "31.5 MB on a cache of 45 MB lie on a cliff that rests on two cells of Table 4, one at 2.6 and one at 4.0 "
        "(item 3); at a gap of 45 MB the model takes every byte from memory",
    )


def _f18(made: Section, panels: Panels, _: Simulator) -> None:
    panel = only_panel(panels)
    x = panel.xs[-1]
    share = panel.us("sgrs", x) / panel.us("pack", x)
    made.finds(
        "copy reaches a third of sgrs's bandwidth at 1 MB",
        "1/3 (0.25 to 0.40)",
        f"{share:.2f}",
        0.25 <= share <= 0.40,
        "the same measurement as F17b, the other way round",
    )


def _f19(made: Section, panels: Panels, _: Simulator) -> None:
    panel = only_panel(panels)
    copies = dict(zip(panel.xs, panel.both_ends("pack", "copy"), strict=True))
    flat = copies[128] / copies[2]
    growth = copies[1024] / copies[256]
    extra = {x: panel.us("sgrs", x) / panel.us(PLAIN, x) for x in panel.xs}
    made.finds(
        "the CPU's copies are flat up to 128 B and double with the size from 256 B on",
        "128 B / 2 B near 1; 1 KB / 256 B near 4",
        f"{flat:.2f}; {growth:.2f}",
        flat < 1.3 and 3 < growth < 4.5,
        "put in: the price of a block that misses everything is read off this figure",
    )
    made.finds(
        "sgrs exceeds one contiguous send only for small blocks",
        "over 1.2 times at 128 B and less, under 1.1 at 1 KB",
        f"{extra[128]:.2f} at 128 B, {extra[1024]:.2f} at 1 KB",
        extra[128] > 1.2 and extra[1024] < 1.1,
    )


def _f20(made: Section, panels: Panels, _: Simulator) -> None:
    panel = only_panel(panels)
    create, bind = (dict(zip(panel.xs, panel.curve(m), strict=True)) for m in ("create_key", "bind_key"))
    axis = 3500.0
    grown = max(create[2048] - create[4], bind[2048] - bind[4])
    whole = create[32768] + bind[32768]
    made.finds(
        "creating a key is huge, posting it small; both nearly flat to 2048 entries, then growing to some 3500 µs",
        "create over 5 times bind; up to 2048 entries both grow by less than 1 % of the axis; 2000 to 4000 µs at 32 K",
        f"2048: {us(create[2048])} and {us(bind[2048])}, at most {us(grown)} more than at 4; 32 K: {us(whole)} in all",
        create[2048] > 5 * bind[2048] and grown < axis / 100 and 2000 < whole < 4000,
        "put in, not predicted: what a key's creation costs is read off this figure",
    )


def _f21(made: Section, panels: Panels, _: Simulator) -> None:
    panel = only_panel(panels)
    small = [panel.best(x, ("pack", "umr_write")) for x in panel.xs if x < 128]
    first = panel.first("sgrs", "pack")
    worst = max(abs(panel.us("sgrs", x) / panel.us("umr_send", x) - 1) for x in panel.xs)
    made.finds(
        "16 blocks: copy is best below 128 B",
        "pack before umr_write at 4 to 64 B",
        f"pack wins {small.count('pack')} of {len(small)} sizes against umr_write; sgrs passes pack {from_on(first)}",
        set(small) == {"pack"},
        f"{_CONSTANT}. For copy to win below 128 B while sgrs = umr_sr, that constant would have to be absent: the "
        "figure contradicts the paper's own Table 4, or compares umr_w by another clock",
    )
    made.finds(
        "sgrs and umr_sr are equal",
        "within 10 %",
        f"{worst:.0%} at most",
        worst <= 0.10,
    )
    made.finds(
        "above 128 B umr_w is best",
        "umr_write first from 256 B on",
        ", ".join(sorted({panel.best(x, panel.lines) for x in panel.xs if x > 128})),
        all(panel.best(x, panel.lines) == "umr_write" for x in panel.xs if x > 128),
    )


def _f22(made: Section, panels: Panels, _: Simulator) -> None:
    panel = only_panel(panels)
    gains = [panel.us("umr_send", x) - panel.us("umr_write", x) for x in panel.xs]
    wins = [x for x in panel.xs if panel.best(x, panel.lines) == "umr_write"]
    made.finds(
        "the sender has four times the blocks of a quarter of the size: umr_w gains 3 to 5 µs",
        "umr_send less umr_write: 3 to 5 µs",
        f"{us(min(gains))} to {us(max(gains))}; first from {bytes_text(wins[0]) if wins else 'no size'} on",
        min(gains) >= 2.5 and max(gains) <= 5.5,
        "the model knows one constant for what a receiver does, that of Table 4; that it should be larger with 64 "
        "blocks at the sender follows from nothing in it",
    )


def _f23(made: Section, panels: Panels, _: Simulator) -> None:
    small, large = (panels[f"blocks of {bytes_text(b)}"] for b in (1024, 65536))
    four = ("pack", "sgrs", "umr_send", "umr_write")
    spread = max(small.us(m, 16) for m in four) / min(small.us(m, 16) for m in four)
    paper = [c.paper_us for c in table4.cells() if (c.block_bytes, c.blocks) == (1024, 16)]
    fall = small.us("umr_send", 512) / small.us("pack", 512)
    times = large.us("umr_send", 512) / large.us("sgrs", 512)
    made.finds(
        "few blocks: all close",
        f"16 x 1 KB: the slowest takes {max(paper) / min(paper):.2f} times the fastest (Table 4; within 10 %)",
        f"{spread:.2f}",
        abs(spread / (max(paper) / min(paper)) - 1) < 0.1,
    )
    made.finds(
        "many: UMR collapses, at 1 KB below even copy",
        "512 x 1 KB: umr_send slower than pack; 512 x 64 KB: 3.3 times sgrs (Table 4; 2.8 to 3.8)",
        f"{fall:.2f} times pack; {times:.2f} times sgrs",
        fall > 1 and 2.8 < times < 3.8,
    )


def _f24(made: Section, panels: Panels, _: Simulator) -> None:
    ends = {name: panel.first("pack", "umr_write") for name, panel in panels.items()}
    found = ", ".join(f"{name}: {from_on(x, str)}" for name, x in ends.items())
    small = [x for name, x in ends.items() if name in ("points of 4 B", "points of 8 B")]
    made.finds(
        "2D stencil: umr_w best for few points, copy best for many",
        "copy passes umr_w at some number of points, for small points",
        f"pack faster {found}",
        all(x is not None for x in small),
    )
    made.finds(
        "the crossing lies at 21 points",
        "13 to 29 points, for some size of a point",
        f"pack faster {found}",
        any(x is not None and 13 <= x <= 29 for x in ends.values()),
        "11 blocks at 21 points: umr_w would have to pay 200 ns for each block more than copy does, where Table 4 "
        "has some 90 ns for 256 B. The size of a point is not given; smaller points move the crossing least",
    )


def _f25(made: Section, panels: Panels, _: Simulator) -> None:
    panel = only_panel(panels)
    best = {x: panel.best(x, panel.lines) for x in panel.xs}
    made.finds(
        "3D face: umr_w best below 32 x 32, sgrs above",
        "umr_write at 4 to 16 rows, sgrs at 64 and 128",
        ", ".join(f"{x}: {m}" for x, m in best.items()),
        all(best[x] == "umr_write" for x in (4, 8, 16)) and all(best[x] == "sgrs" for x in (64, 128)),
    )


STUDIES = (
    Study("F17a", PLATFORM_2, judge_f17a, "literature"),
    Study("F17b", PLATFORM_2, _f17b, "calibrated"),
    Study("F18", PLATFORM_2, _f18, "calibrated", (BANDWIDTH,)),
    Study("F19", PLATFORM_2, _f19, "literature", (SPLIT,)),
    Study("F20", PLATFORM_2, _f20, "literature", ("time (µs)",)),
    Study("F21", PLATFORM_2, _f21, "calibrated"),
    Study("F22", PLATFORM_2, _f22, "calibrated"),
    Study("F23", PLATFORM_2, _f23, "calibrated"),
    Study("F24", PLATFORM_2, _f24, "predicted"),
    Study("F25", PLATFORM_2, _f25, "predicted"),
)
