"""The `lacuna explain` command: what a layout is, how it is copied, which way it would be moved here, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from lacuna import __version__
from lacuna._core import Guide, Layout, describe, instruction_set, message_ways
from lacuna.bench import command_exit
from lacuna.bench.delivery import Delivery
from lacuna.bench.messages import ways_table as messages_table
from lacuna.bench.validation import pair_measurement
from lacuna.bench.validation.pair_measurement import Measured
from lacuna.cli.options import JsonOption, NicOption, command_app, exit_statuses, find_mpis, worker_nic
from lacuna.guide.pairs import Pair
from lacuna.layout_text import LayoutTextError, Parsed, read
from lacuna.mpi import ways, ways_table
from lacuna.mpi.distance import Distance
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.mpi.interposer import MpiError, name_and_abi
from lacuna.mpi.launch import launch
from lacuna.mpi.ways import WaysError
from lacuna.units import bytes_text
from lacuna.worker import messages
from lacuna.worker.client import find_worker
from lacuna.worker.protocol import written

app = command_app()

MOST_RUNS = 1_000_000
"""So many runs are looked at for their lengths."""


class Objective(StrEnum):
    latency = "latency"
    bandwidth = "bandwidth"
    cpu = "cpu"


HELP = """Show what a layout is, how it is copied, which way Lacuna would move it here, and why.

First the layouts: runs, extent, canonical form, the kernel of each step. Then every way to move SRC into DST: the
time that is expected by the prices of `lacuna guide`, split into stages, what it lost by, and where it would win.
LACUNA_METHOD and LACUNA_PATH force a way.

Then how a message of SRC goes to a rank that shares memory: eager, by a stream, copied directly or by rendezvous,
with the time that each way is expected to take. LACUNA_WAY forces one of them.

Last, what a preloaded MPI program would do with SRC: by its own datatypes, packed by Lacuna, or through shared
memory, for messages and collectives, with the time that each is expected to take. Of the MPIs that
`lacuna guide --mpi` measured here, or those that --mpi names; of a job of --ranks ranks on this machine, whose CPUs are
near one another, or as --distance says; ranks that share CPUs count as near. LACUNA_MPI_WAY and LACUNA_MPI_OFFER force
a way, and LACUNA_MPI_DISTANCE says the distance, as they do in the program.

With --measure each of these ways is forced and timed with SRC, and verified: by two processes here, and by two ranks of
each MPI that --mpi names by its compiler wrapper.

Put quotes around a LAYOUT, for the shell. It is one of these:

\b
DDTBench     NAS_LU_y, NAS_LU_y:3, FFT2:1:receive
             the family, the index of its size (0 if left out), send or
             receive (send if left out); any other name lists all families
basic types  byte char short int long float double c_float_complex
             c_double_complex int8 .. uint64 float32 float64, unsigned_int
             and so on, in any case, also as MPI_DOUBLE and MPI_INT8_T
MPI's        contiguous(count, old)
             vector(count, blocklength, stride, old)
             hvector(count, blocklength, stride_bytes, old)
             indexed([blocklengths], [displacements], old)
             hindexed([blocklengths], [byte_displacements], old)
             indexed_block(blocklength, [displacements], old)
             hindexed_block(blocklength, [byte_displacements], old)
             struct([blocklengths], [byte_displacements], [members])
             subarray([sizes], [subsizes], [starts], old, order=C)
             darray(processes, rank, [sizes], [distributions],
                    [block_sizes], [grid], old, order=C)
             resized(old, lower_bound, extent)
             old and members are LAYOUTs; the order is C or F;
             distributions are none, block or cyclic; a block size of -1
             is the default
others       bytes(count)
             blocks([offsets], [lengths])
             paged(block_bytes, [page_numbers])
             offsets and lengths are in bytes; page n is at n * block_bytes
NumPy views  matrix.npy, matrix.npy[::2, 3:5], matrix.npy.T
             the elements in index order, relative to the first; put
             quotes around a name with spaces, or not of .npy: "my file"

A list is [1, 2, 3], range(first, end, step) as in Python, or a .npy file of integers. Arguments may be named:
vector(count=16, blocklength=4, stride=100, old=double).

\b
Examples:
  lacuna explain NAS_LU_y:3
  lacuna explain 'vector(16, 4, 100, double)'
  lacuna explain 'struct([1, 3], [0, 16], [int, vector(2, 1, 3, double)])'
  lacuna explain 'subarray([64, 64], [8, 8], [0, 4], float, order=F)'
  lacuna explain 'paged(8192, pages.npy)' 'bytes(1048576)'
  lacuna explain NAS_LU_y:3 --measure
  lacuna explain FFT2:1 --nic model --objective cpu
  lacuna explain 'vector(512, 1, 8, double)' --mpi open_mpi --mpi mpich --ranks 64
  lacuna explain 'vector(512, 1, 8, double)' --mpi mpich --distance distant
  lacuna explain 'vector(512, 1, 8, double)' --mpi mpicc --measure
  lacuna explain 'matrix.npy[::2, 3:5]' --json - | jq '.layouts[0].kernels'

""" + exit_statuses(
    "with --measure: a way moved a wrong byte, or an MPI could not be measured",
    "the worker is missing, died or fell silent",
    kept="",
    wrong="wrong usage, a LAYOUT that cannot be read, sizes that differ, or a forced way that cannot be",
)


MpisOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mpi",
        metavar="NAME|[NAME=]MPICC",
        help=f"What programs of this MPI do with SRC: {', '.join(ways_table.NAMES)}, or one by its compiler wrapper; "
        "may be given often. [default: those measured here]",
    ),
]
ObjectiveOption = Annotated[Objective, typer.Option("--objective", help="What is to be small.")]
MeasureOption = Annotated[
    bool, typer.Option("--measure", help="Measure every way, and show what it took beside what was expected.")
]
RanksOption = Annotated[
    int, typer.Option("--ranks", min=2, help="So many ranks of an MPI program run on this machine.")
]
UsesOption = Annotated[
    float,
    typer.Option(
        "--uses", min=0, help="Transfers for which bound indirect keys hold: 1 binds them each time, 0 never again."
    ),
]
DistanceOption = Annotated[
    Distance | None,
    typer.Option(
        "--distance",
        help="How far the CPUs of the program's ranks are from one another, as two with a common last-level cache, or "
        "as two without one. [default: near, or distant if only such CPUs were measured here and ranks do not share "
        "CPUs]",
        show_default=False,
    ),
]
MEASURED_MS = 20.0
"""About how long the ways of one use race."""
MOST_MEASURED = 16 << 20
"""Bytes that a layout spans whose messages are measured: each way is verified byte by byte, twice."""


@app.command(help=HELP)
def explain(
    source: Annotated[str, typer.Argument(metavar="SRC", help="A layout, in one of the forms above.")],
    destination: Annotated[
        str | None,
        typer.Argument(
            metavar="DST",
            help="The destination, of as many bytes. [default: the same; of a DDTBench name, what receives it]",
            show_default=False,
        ),
    ] = None,
    nic: NicOption = "local",
    objective: ObjectiveOption = Objective.latency,
    cold: Annotated[bool, typer.Option("--cold", help="The data is in no cache.")] = False,
    measure: MeasureOption = False,
    uses: UsesOption = 0.0,
    mpi: MpisOption = None,
    ranks: RanksOption = 2,
    distance: DistanceOption = None,
    data: JsonOption = None,
) -> None:
    delivery = Delivery(data, None)
    shown = [_read(text) for text in (source, destination) if text is not None]
    send, receive = shown[0], shown[-1] if destination is not None else _receiver_of(shown[0])
    if send.layout.size != receive.layout.size:
        raise typer.BadParameter(
            f"the source has {send.layout.size:,} bytes, the destination {receive.layout.size:,}; they must be as many",
            param_hint="LAYOUT",
        )
    console = delivery.console()
    own_nic = worker_nic(nic)
    libraries, installations = _mpis(mpi)
    measured = None
    if measure:
        with command_exit.guarded():
            measured = pair_measurement.measure(own_nic, Pair("asked", send.layout, receive.layout), cold=cold)
    text, transfer = _transfer(own_nic, send.layout, receive.layout, objective, measured, cold=cold, uses=uses)

    if receive is not send and destination is None:
        shown.append(receive)
    _print_layouts(console, shown)
    console.print(Text(text), soft_wrap=True)
    asked = _Asked(send.layout, own_nic, libraries, installations if measure else [], ranks, distance, measure)
    sent = _sent(console, asked)
    document = {
        "lacuna_version": __version__,
        "instruction_set": instruction_set(),
        "layouts": [_facts(parsed) for parsed in shown],
        "transfer": transfer,
        **sent,
    }
    delivery.write_json(written(document) + "\n")
    for failure in measured.failures if measured else ():
        console.print(f"ERROR: {failure}", markup=False)
    raise typer.Exit(command_exit.MEASUREMENT_FAILED if measured and measured.failures else 0)


def _print_layouts(console: Console, shown: list[Parsed]) -> None:
    roles = ("Source: ", "Destination: ") if len(shown) > 1 else ("",)
    for role, parsed in zip(roles, shown, strict=True):
        console.print(Text.assemble((role + parsed.meaning, "bold")), soft_wrap=True)
        console.print(Text(describe(parsed.layout)), soft_wrap=True)
    if len(shown) == 1:
        console.print("Destination: the same\n")


def _transfer(
    nic: str,
    send: Layout,
    receive: Layout,
    objective: Objective,
    measured: Measured | None,
    *,
    cold: bool,
    uses: float,
) -> tuple[str, dict[str, Any]]:
    """Which way is chosen, and all the others: in words, and as data."""
    message_us, times = (measured.message_us, measured.times) if measured else (0.0, {})
    try:
        guide = Guide(nic, message_us=message_us)
        text, candidates = guide.explain(send, receive, objective=objective.value, cold=cold, uses=uses, measured=times)
    except ValueError as e:
        raise typer.BadParameter(str(e), param_hint="choice") from e
    warnings = list(guide.warnings)
    if measured and measured.moved:
        warnings.append(
            "while it was measured the two processes moved nearer to one another or apart: the measured times do not "
            "compare; try again"
        )
    return text.rstrip(), {
        "objective": objective.value,
        "profile_warnings": warnings,
        "chosen": candidates[0],
        "candidates": candidates,
    }


@dataclass(frozen=True)
class _Asked:
    """Of which messages, and programs."""

    layout: Layout
    nic: str
    libraries: list[str]
    installations: list[MpiInstallation]
    """Those that are measured."""
    ranks: int
    distance: Distance | None
    measures: bool


def _mpis(wanted: list[str] | None) -> tuple[list[str], list[MpiInstallation]]:
    """The MPIs that --mpi names, and of these the ones whose compiler wrapper it names."""
    if not wanted:
        return ways_table.measured_here(), []
    installations = find_mpis([one for one in wanted if one not in ways_table.NAMES])
    try:
        by_wrapper = [ways.library_of_launcher(name_and_abi(launch(one).version)[0]) for one in installations]
    except (MpiError, MpiInstallationError) as e:
        raise typer.BadParameter(str(e), param_hint="--mpi") from e
    if len(set(by_wrapper)) < len(by_wrapper):
        raise typer.BadParameter("two of them are the same MPI, whose ways stand in one table", param_hint="--mpi")
    return list(dict.fromkeys([one for one in wanted if one in ways_table.NAMES] + by_wrapper)), installations


def _sent(console: Console, asked: _Asked) -> dict[str, Any]:
    """How it is sent to a rank that shares memory, if any do by this NIC, and by which way in programs of these MPIs:
    shown, and as data."""
    try:
        sent = message_ways(asked.layout, asked.nic)
        in_programs = ways_table.expected(asked.layout, asked.libraries, asked.ranks, asked.distance)
    except ValueError as e:
        raise typer.BadParameter(str(e), param_hint="choice") from e
    if asked.measures:
        refusal = _refusal(asked.layout)
        if refusal:
            console.print(f"Ways of messages and of MPIs were not measured: {refusal}", soft_wrap=True)
        else:
            with command_exit.guarded():
                _measure(asked, sent, in_programs)
    messages_table.show_expected(console, sent)
    ways_table.show_expected(console, in_programs, asked.ranks)
    return {"send": sent, "mpi": in_programs}


def _refusal(layout: Layout) -> str:
    """Why messages of it are not measured; empty: they are."""
    if not layout.size:
        return "it has no bytes"
    if layout.overlaps:
        return "it names bytes twice, and cannot be received"
    if layout.true_extent > MOST_MEASURED:
        return f"it spans {bytes_text(layout.true_extent)}; at most {bytes_text(MOST_MEASURED)} are measured"
    if layout.run_count > ways.MOST_RUNS:
        return f"it has {layout.run_count:,} runs; at most {ways.MOST_RUNS:,} are measured"
    return ""


def _measure(asked: _Asked, sent: dict[str, Any], in_programs: dict[str, Any]) -> None:
    """Enters what each way that can be takes. What cannot be measured ends the command."""
    layout = Layout.hindexed([1], [-asked.layout.true_lower_bound], asked.layout)
    try:
        if sent:
            messages.measure_ways(find_worker(), layout, sent["ways"], MEASURED_MS)
        for installation in asked.installations:
            given = ways.measure_given(installation, layout, MEASURED_MS)
            ways_table.enter_measured(in_programs[ways.library_of(given.library_version)], given)
    except (messages.FailedError, MpiError, MpiInstallationError, WaysError, ValueError) as e:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"ERROR: {e}", markup=False)
        raise typer.Exit(command_exit.MEASUREMENT_FAILED) from e


def _receiver_of(sent: Parsed) -> Parsed:
    """What receives a layout where the user names none: that of DDTBench, else the same layout."""
    ddtbench = re.match(r"(\w+:\d+):send \(DDTBench", sent.meaning)
    return _read(f"{ddtbench[1]}:receive") if ddtbench else sent


def _read(text: str) -> Parsed:
    try:
        return read(text)
    except LayoutTextError as e:
        raise typer.BadParameter(str(e), param_hint="LAYOUT") from e


def _facts(parsed: Parsed) -> dict[str, Any]:
    layout = parsed.layout
    return {
        "parsed": parsed.meaning,
        "bytes": layout.size,
        "runs": layout.run_count,
        "mean_run_bytes": layout.size / layout.run_count if layout.run_count else None,
        "lower_bound": layout.lower_bound,
        "extent": layout.extent,
        "true_lower_bound": layout.true_lower_bound,
        "true_extent": layout.true_extent,
        "run_lengths": {
            "of_first_runs": min(layout.run_count, MOST_RUNS),
            "classes": [{"from": low, "to": 2 * low - 1, "runs": runs} for low, runs in _classes(layout)],
        },
        "form": layout.describe(),
        "kernels": layout.kernels().splitlines(),
    }


def _classes(layout: Layout) -> Iterator[tuple[int, int]]:
    """The least length and the number of runs of each class, from the shortest to the longest that is there."""
    found = layout.length_classes(MOST_RUNS)
    first = next((i for i, runs in enumerate(found) if runs), 0)
    for i, runs in enumerate(found[first:], first):
        yield 1 << i, runs
