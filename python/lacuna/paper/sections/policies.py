"""S4: what becomes of a message's memory, by the four policies of the slides of 2006, on their two networks."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from lacuna import _core
from lacuna.paper import profiles
from lacuna.paper.profiles import Profile
from lacuna.paper.runs import sweep
from lacuna.paper.section import Line, Plot, Section
from lacuna.paper.simulator import Simulator
from lacuna.report.row_tables import RowTable

NETWORKS = ("infiniband-ddr-2006", "myrinet-gm-2006")
POLICIES = {
    "copy": "copy in/out",
    "leave_pinned": "leave pinned",
    "pipeline": "pipeline",
    "leave_pinned_pipeline": "leave-pinned pipeline",
}
SIZES = tuple(1 << k for k in range(14, 24))
REUSE = (0, 25, 50, 75, 100)
"""Percent of messages whose memory was used before."""
LARGE = 8 << 20
PART = 256 << 10
_MESSAGES = 8


def buffers(reuse: int, messages: int) -> list[int]:
    """The memory of each message: number 0 for so many percent, spread evenly, and one of its own for the others."""
    fresh = 0
    made = []
    for i in range(messages):
        if (i + 1) * reuse // 100 > i * reuse // 100:
            made.append(0)
        else:
            fresh += 1
            made.append(fresh)
    return made


def gb_s(profile: Profile, policy: str, size: int, reuse: int, messages: int = _MESSAGES) -> float:
    """Bandwidth of messages one after another; the first two, which find everything new, do not count."""
    times = _core.simulate_messages(str(profile.path), policy, PART, size, [0, *buffers(reuse, messages + 1)])
    return size / statistics.fmean(times[2:]) / 1e3


def s4(simulator: Simulator) -> Section:
    made = Section(
        "S4",
        "Four policies of registration (2006)",
        f"contiguous messages back and forth; parts of {PART >> 10} KiB, each one RDMA write, two of them under way; "
        "no memory is used twice in the first figure, and 8 MiB in the second",
        ", ".join(NETWORKS),
    )
    for name in NETWORKS:
        profile = profiles.load(name)
        _network(made, profile)
        _costs(made, simulator, profile)
    return made


def _network_name(profile: Profile) -> str:
    return profile.title.split(":")[0]


def _network(made: Section, profile: Profile) -> None:
    network, peak = _network_name(profile), profile.value("nic.wire_gb_s")
    alone = {policy: [gb_s(profile, policy, n, 0, 4) for n in SIZES] for policy in POLICIES}
    again = {policy: [gb_s(profile, policy, LARGE, reuse) for reuse in REUSE] for policy in POLICIES}
    made.plots.append(
        Plot(
            f"{network}: no reuse",
            "message",
            "GB/s",
            [Line(POLICIES[p], SIZES, ys) for p, ys in alone.items()],
            bytes_on_x=True,
        )
    )
    made.plots.append(
        Plot(
            f"{network}: 8 MiB",
            "messages whose memory was used before (%)",
            "GB/s",
            [Line(POLICIES[p], REUSE, ys) for p, ys in again.items()],
        )
    )
    best = {policy: max((*alone[policy], *again[policy])) / peak for policy in POLICIES}
    made.grids.append(
        RowTable(
            ("policy", "share of peak"),
            [(POLICIES[p], f"{share:.0%}") for p, share in best.items()],
            title=f"{network}: the best of each, of {peak:g} GB/s",
        )
    )
    made.data[profile.name] = {
        "sizes": SIZES,
        "no_reuse_gb_s": alone,
        "reuse": REUSE,
        "reuse_gb_s": again,
        "peak": best,
    }
    _judge(made, network, alone, again)


def _judge(
    made: Section, network: str, alone: Mapping[str, Sequence[float]], again: Mapping[str, Sequence[float]]
) -> None:
    def said(values: dict[str, float]) -> str:
        return ", ".join(f"{POLICIES[p]} {v:.2f}" for p, v in sorted(values.items(), key=lambda item: -item[1]))

    never = {p: ys[-1] for p, ys in alone.items()}
    always = {p: ys[-1] for p, ys in again.items()}
    pipelines = ("pipeline", "leave_pinned_pipeline")
    drop = min(again["pipeline"]) / max(again["pipeline"])
    made.finds(
        f"{network}: without reuse a pipeline is fastest",
        "at 8 MiB in GB/s: pipeline ahead of leave pinned and of copy in/out",
        said(never),
        max(never[p] for p in pipelines) > max(never["leave_pinned"], never["copy"]),
    )
    made.finds(
        f"{network}: with full reuse leave pinned is fastest",
        "at 8 MiB in GB/s: leave pinned, alone or with the pipeline, ahead of the others",
        said(always),
        min(always["leave_pinned"], always["leave_pinned_pipeline"]) >= max(always["pipeline"], always["copy"]),
    )
    made.finds(
        f"{network}: the pipeline hardly depends on reuse",
        "its slowest at least 0.9 of its fastest",
        f"{drop:.2f}",
        drop >= 0.9,
    )


def _costs(made: Section, simulator: Simulator, profile: Profile) -> None:
    """What the policies weigh against one another."""
    costs = simulator.set_up(profile.path, [{"bytes": n} for n in SIZES])
    wire = sweep(simulator, profile, {n: _blocks(n, 1) for n in SIZES}, ["pack"])
    # Two blocks with a line between them: as much to copy as one, and not contiguous.
    copied = sweep(simulator, profile, {n: _blocks(n // 2, 2) for n in SIZES}, ["pack"])
    lines = [
        Line("registration", SIZES, [c["register_us"] for c in costs]),
        Line("deregistration", SIZES, [c["deregister_us"] for c in costs]),
        Line("wire", SIZES, wire.curve("pack")),
        Line("copy in and out", SIZES, copied.both_ends("pack", "copy")),
    ]
    made.plots.append(
        Plot(f"{_network_name(profile)}: what is weighed", "message", "time (µs)", lines, bytes_on_x=True)
    )
    register, undo, flown, copies = (line.ys[-1] for line in lines)
    without = (register + undo) / flown
    made.finds(
        f"{_network_name(profile)}: registering a message and back is a part of its transfer, so that there is "
        "something to hide, and less than copying in and out",
        "at 8 MB: registration and back 5 to 60 % of the wire's time, and less than copying in and out",
        f"{without:.0%} of the wire; copying {copies / flown:.0%}",
        0.05 <= without <= 0.6 and register + undo < copies,
    )


def _blocks(size: int, count: int) -> dict[str, object]:
    return {"kind": "blocks", "block_bytes": size, "block_count": count, "gap_bytes": 64}
