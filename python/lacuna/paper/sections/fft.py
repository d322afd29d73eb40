"""F12, F13 and R5.1.1 on this machine: the two-dimensional FFT of the report, on real MPIs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from lacuna.paper.fft_runs import Effort, Plan, Runs
from lacuna.paper.section import Line, Plot, Section
from lacuna.report.row_tables import RowTable

_SHARES = {"packing": "packing", "communication": "communication", "fft": "transforms"}
_TITLES = {"none": "no datatype", "send": "send", "recv": "recv", "both": "both", "native": "Lacuna, native"}


@dataclass(frozen=True)
class FftChapter:
    """One experiment, by the name of its subcommand: `full` and `quick` are its plans, one for each of `sections`."""

    name: str
    title: str
    full: tuple[Plan, ...]
    quick: tuple[Plan, ...]
    sections: tuple[Callable[[Runs, Plan], Section], ...]


_OTHER_MPIS = "these MPIs are not the report's, and both ranks are on one node"
_BUSY = "where other programs use the CPUs, the ranks wait for one another, and ratios say little"

FULL = Effort(rounds=3, repetitions=11, seconds=4, budget=900)
QUICK = Effort(rounds=1, repetitions=5, seconds=1, budget=100)


def f12a(runs: Runs, plan: Plan) -> Section:
    made = Section(
        "F12a",
        "2D FFT: packing's and communication's share, by the size of the matrix",
        f"N x N complex numbers, packed by hand, {plan.ranks[0]} ranks on one node, N to {plan.ns[-1]:,} (the report: "
        "one rank a node, N to 40,000, which is 26 GB). Shares of the whole transform",
        "",
        "measured",
    )
    shares = _shares(made, runs, plan, "N", plan.ns)
    if shares:
        made.finds(
            "as the matrix grows, packing takes a larger share of a 2D FFT and communication a smaller one",
            f"from N = {plan.ns[0]:,} to {plan.ns[-1]:,} packing's share rises and communication's falls, under "
            "every MPI",
            _ends_text(shares),
            all(
                s["packing"][-1] > s["packing"][0] and s["communication"][-1] < s["communication"][0]
                for s in shares.values()
            ),
            "both ranks are on one node: communication is copies through memory too, which grow as packing does",
        )
    return made


def f12b(runs: Runs, plan: Plan) -> Section:
    made = Section(
        "F12b",
        "2D FFT: packing's and communication's share, by the number of ranks",
        f"N = {plan.ns[0]:,}, packed by hand, {plan.ranks[0]} to {plan.ranks[-1]} ranks on one node with "
        f"{len(os.sched_getaffinity(0))} CPUs (the report: N = 10,000, 2 to 16 ranks). More ranks than CPUs take "
        "turns: waiting for a CPU is in communication",
        "",
        "measured",
    )
    shares = _shares(made, runs, plan, "ranks", plan.ranks)
    if shares:
        made.finds(
            "communication's share of a 2D FFT grows with the number of ranks",
            f"a larger share with {plan.ranks[-1]} ranks than with {plan.ranks[0]}, under every MPI",
            _ends_text(shares),
            all(s["communication"][-1] > s["communication"][0] for s in shares.values()),
        )
    return made


def _shares(made: Section, runs: Runs, plan: Plan, x: str, xs: Sequence[int]) -> dict[str, dict[str, list[float]]]:
    """Of each MPI that has all points: each phase's share in percent, over the sizes or over the ranks. Adds a plot of
    each and a table."""

    def share(mpi: str, what: str, n: int, ranks: int) -> float:
        part, whole = (_known(runs.us(mpi, n, "none", w, ranks=ranks)) for w in (what, "whole"))
        return 100 * part / whole

    points = list(product(plan.ns, plan.ranks))
    kept = [m for m in runs.mpis if all(runs.us(m, n, "none", ranks=r) is not None for n, r in points)]
    shares = {m: {what: [share(m, what, n, r) for n, r in points] for what in _SHARES} for m in kept}
    rows = []
    for mpi, of_mpi in shares.items():
        lines = [Line(_SHARES[what], xs, values) for what, values in of_mpi.items()]
        made.plots.append(Plot(mpi, x, "share of the whole (%)", lines))
        rows += [[f"{mpi}, {line.name}", *(f"{value:.0f} %" for value in line.ys)] for line in lines]
    title = "Shares of the whole transform (the slowest rank of each phase)"
    made.grids.append(RowTable(["MPI", *(f"{x} = {value:,}" for value in xs)], rows, title=title))
    return shares


def f13(runs: Runs, plan: Plan) -> Section:
    n = plan.ns[-1]
    made = Section(
        "F13",
        "2D FFT: datatypes on neither side, on one, on both, and Lacuna",
        f"the two exchanges of a transform, packing included, N = {plan.ns[0]:,} to {n:,}, 2 ranks on one node (the "
        "report: N = 40,000, 2 nodes with 8 ranks each). Preloaded: the same program with liblacuna_mpi before its MPI",
        "",
        "measured",
    )
    four = ("none", "send", "recv", "both")
    kept = [m for m in runs.mpis if all(runs.us(m, n, v) is not None for v in four)]
    made.plots = [_exchange_plot(runs, m, plan.ns) for m in kept]
    made.grids = [_exchange_grid(runs, kept, size) for size in reversed(plan.ns)]
    if not kept:
        return made
    times = {m: {v: _known(runs.us(m, n, v)) for v in four} for m in kept}
    fastest = {m: min(four, key=lambda v: t[v]) for m, t in times.items()}
    made.finds(
        "packing by hand is the fastest of the four variants",
        f"under every MPI, at N = {n:,}",
        "; ".join(f"{m}: {_TITLES[v]}" for m, v in fastest.items()),
        all(v == "none" for v in fastest.values()),
        _OTHER_MPIS,
    )
    made.finds(
        "a datatype at the receiver, or on both sides, is worse than one at the sender",
        f"under every MPI, at N = {n:,}",
        "; ".join(
            f"{m}: recv {t['recv'] / t['send']:.2f}, both {t['both'] / t['send']:.2f} times send"
            for m, t in times.items()
        ),
        all(min(t["recv"], t["both"]) > t["send"] for t in times.values()),
        _OTHER_MPIS,
    )
    _f13_with_lacuna(made, runs, times, n)
    return made


def _f13_with_lacuna(made: Section, runs: Runs, times: dict[str, dict[str, float]], n: int) -> None:
    """`times`: of each MPI by variant, without Lacuna."""
    with_lacuna = {
        f"{m}, {_TITLES[v]}{', preloaded' if p else ''}": t
        for m in times
        for v, p in (("both", True), ("native", False))
        if (t := runs.us(m, n, v, preloaded=p)) is not None
    }
    if not with_lacuna:
        return
    by_hand = min(times, key=lambda m: times[m]["none"])
    best = min(with_lacuna, key=lambda k: with_lacuna[k])
    ratio = with_lacuna[best] / times[by_hand]["none"]
    made.finds(
        "Lacuna, native or preloaded, takes at most half of packing by hand on the best MPI without it",
        f"at most 0.5, at N = {n:,}",
        f"{ratio:.2f} ({best}; by hand: {by_hand})",
        ratio <= 0.5,
        _BUSY,
        of="F13, Lacuna",
    )


def r511(runs: Runs, plan: Plan) -> Section:
    last = plan.ns[-1]
    made = Section(
        "R5.1.1",
        "2D FFT: receiving by datatype against unpacking by hand, by the size of the matrix",
        f"whole transforms, 2 ranks on one node, N = {plan.ns[0]} to {last:,} (the report: 2 nodes, N = 48 to 10,240)",
        "",
        "measured",
    )
    kept = [m for m in runs.mpis if _ratios(runs, m, plan.ns, preloaded=False)]
    both = {m: {p: _ratios(runs, m, plan.ns, preloaded=p) for p in (False, True)} for m in kept}
    rows = []
    for mpi, of_mpi in both.items():
        found = {p: ratios for p, ratios in of_mpi.items() if ratios}
        lines = [Line(_side(p), list(r), list(r.values()), dashed=p) for p, r in found.items()]
        made.plots.append(Plot(mpi, "N", "recv, time over that by hand", lines))
        rows += [[f"{mpi}, {_side(p)}", *(f"{r[n]:.2f}" if n in r else "-" for n in plan.ns)] for p, r in found.items()]
    title = "Whole transform with a receiving datatype, over that packed by hand in the same job"
    made.grids = [RowTable(["MPI", *(f"N = {n:,}" for n in plan.ns)], rows, title=title)]
    _judge_r511(made, both, last)
    return made


def _judge_r511(made: Section, both: dict[str, dict[bool, dict[int, float]]], last: int) -> None:
    """`both`: of each MPI the ratios by N, plain and preloaded; `last`: the largest N."""
    plain = {m: both[m][False] for m in both if last in both[m][False]}
    if plain:
        made.finds(
            "receiving by datatype takes a multiple of the time of unpacking by hand (136 times with Open MPI 4.0 "
            "at N = 2,560, 3 times with MVAPICH2)",
            f"more than 1 under every MPI, at N = {last:,}",
            "; ".join(f"{m}: {r[last]:.2f}" for m, r in plain.items()),
            all(r[last] > 1 for r in plain.values()),
            _OTHER_MPIS,
        )
    small = {m: min(r[n] for n in r if n <= 160) for m, r in plain.items() if "openmpi" in m and min(r) <= 160}
    if small:
        made.finds(
            "below N = 160 Open MPI's datatypes are slightly better than packing by hand",
            "below 1 somewhere up to N = 160",
            "; ".join(f"{m}: {r:.2f}" for m, r in small.items()),
            all(r < 1 for r in small.values()),
            "times of tens of microseconds, most of which is not the exchange",
        )
    loaded = {m: max(both[m][True].values()) for m in both if both[m][True]}
    if loaded:
        made.finds(
            "with Lacuna preloaded a receiving datatype is no slower than unpacking by hand, at any size",
            "at most 1.05 under every MPI",
            "; ".join(f"{m}: at most {r:.2f}" for m, r in loaded.items()),
            all(r <= 1.05 for r in loaded.values()),
            _BUSY,
            of="R5.1.1, Lacuna",
        )


def _chapters() -> tuple[FftChapter, ...]:
    def by_hand(ns: tuple[int, ...], ranks: tuple[int, ...] = (2,)) -> Plan:
        return Plan(ns, ranks, variants=("none",), preloads=(False,))

    return (
        FftChapter(
            "f12",
            "2D FFT on real MPIs: shares of packing and communication",
            (by_hand((256, 512, 1024, 2048, 4096)), by_hand((1024,), (2, 4, 8))),
            (by_hand((128, 256, 512, 1024)), by_hand((512,), (2, 4))),
            (f12a, f12b),
        ),
        FftChapter(
            "f13",
            "2D FFT on real MPIs: four variants of datatypes, and Lacuna",
            (Plan((512, 1024, 2048)),),
            (Plan((256, 512)),),
            (f13,),
        ),
        FftChapter(
            "r5.1.1",
            "2D FFT on real MPIs: receiving by datatype, or by hand",
            (Plan((48, 96, 160, 320, 640, 1280, 2560, 3840), variants=("none", "recv")),),
            (Plan((48, 160, 320, 640), variants=("none", "recv")),),
            (r511,),
        ),
    )


APPLICATIONS = _chapters()


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _side(preloaded: bool) -> str:
    return "preloaded" if preloaded else "plain"


def _ends_text(shares: dict[str, dict[str, list[float]]]) -> str:
    return "; ".join(
        f"{m}: " + ", ".join(f"{w} {s[w][0]:.0f} to {s[w][-1]:.0f} %" for w in ("packing", "communication"))
        for m, s in shares.items()
    )


def _exchange_plot(runs: Runs, mpi: str, ns: Sequence[int]) -> Plot:
    lines = []
    plain = [(variant, False) for variant in _TITLES]
    for variant, preloaded in (*plain[:-1], ("both", True), *plain[-1:]):
        found = {n: t for n in ns if (t := runs.us(mpi, n, variant, preloaded=preloaded)) is not None}
        name = _TITLES[variant] + (", preloaded" if preloaded else "")
        if found:
            lines.append(Line(name, list(found), [t / 1e3 for t in found.values()], dashed=preloaded))
    return Plot(mpi, "N", "both exchanges (ms)", lines)


def _exchange_grid(runs: Runs, mpis: Sequence[str], n: int) -> RowTable:
    rows = [
        [
            f"{mpi}, {_side(p)}",
            *(f"{t / 1e3:,.3g}" if (t := runs.us(mpi, n, v, preloaded=p)) is not None else "-" for v in _TITLES),
        ]
        for mpi in mpis
        for p in (False, True)
    ]
    return RowTable(["MPI", *_TITLES.values()], rows, title=f"Both exchanges at N = {n:,} (ms)")


def _ratios(runs: Runs, mpi: str, ns: Sequence[int], *, preloaded: bool) -> dict[int, float]:
    """Of the whole transform, by N; both times are of the same jobs."""
    found = {}
    for n in ns:
        recv, by_hand = (runs.us(mpi, n, v, "whole", preloaded=preloaded) for v in ("recv", "none"))
        if recv is not None and by_hand is not None:
            found[n] = recv / by_hand
    return found
