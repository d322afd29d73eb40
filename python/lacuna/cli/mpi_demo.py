"""`lacuna mpi demo`: whether MPI programs gain on this machine, shown by a halo exchange that comes with Lacuna."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lacuna import units
from lacuna.bench import command_exit
from lacuna.bench.delivery import Delivery
from lacuna.bench.progress import Meter
from lacuna.cli.options import JsonOption, budget_option
from lacuna.mpi import demo
from lacuna.mpi.applications import ApplicationError, LateError
from lacuna.mpi.demo import Demonstration, Verdict
from lacuna.mpi.installations import MpiInstallationError
from lacuna.mpi.interposer import MpiError
from lacuna.worker.protocol import written

_BUDGET = 10.0
_TOO_BUSY = "Is the machine busy, or are there more ranks than CPUs? --budget SECONDS gives the runs more time."


def run(
    mpi: Annotated[
        str | None,
        typer.Option(
            "--mpi",
            metavar="PATH",
            help="The MPI, by its mpicc or mpirun. [default: that of the mpirun on the PATH, or beside this Python]",
            show_default=False,
        ),
    ] = None,
    ranks: Annotated[int, typer.Option("--ranks", metavar="N", min=2, help="How many processes.")] = 2,
    budget: Annotated[float, budget_option("10", "Wall time at most.")] = _BUDGET,
    data: JsonOption = None,
) -> None:
    """Show what Lacuna does for an MPI program: a halo exchange, plain and preloaded by turns, verified.

    Ranks send one another columns of a block of doubles, by MPI's derived datatypes. Each run compares every byte that
    arrives, and every byte beside it. The last line says whether this machine gains.

    \b
    Examples:
      lacuna mpi demo
      lacuna mpi demo --mpi /opt/mpich/bin/mpicc --ranks 4
      lacuna mpi demo --json -

    Exit status: 0, 1 if a byte was wrong or no run ended in time, 2 for wrong usage, 3 if there is no MPI, or none that
    is known.
    """
    delivery = Delivery(data, None)
    console = delivery.console()
    try:
        installation = demo.find_installation(mpi)
        with Meter(console, 2 * demo.PAIRS, budget, "runs") as meter:
            found = demo.measure(
                installation, ranks, budget, lambda done, left: meter.advance(done, 2 * demo.PAIRS, left)
            )
    except (MpiError, MpiInstallationError) as e:
        command_exit.fail(str(e))
    except ApplicationError as e:
        reason = f"{e}\n{_TOO_BUSY}" if isinstance(e, LateError) else str(e)
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"ERROR: {reason}", markup=False)
        raise typer.Exit(command_exit.MEASUREMENT_FAILED) from e
    delivery.write_json(written(found) + "\n")
    show(console, found)


def show(console: Console, found: Demonstration) -> None:
    """The table, and what it means."""
    console.print(f"Halo exchange of {found.ranks} ranks, {found.mpi} ({found.transport})", soft_wrap=True)
    console.print(f"{found.machine}, {found.cpus} CPUs; {found.program}", soft_wrap=True)
    if found.not_compiled:
        console.print("Python's, as nothing compiles one in C: calls take some µs longer, with Lacuna and without.")
    columns: dict[str, list[str]] = {
        "exchange": [size.case for size in found.sizes],
        "sent by a rank": [units.bytes_text(size.sent_bytes) for size in found.sizes],
        "packed by hand, µs": [units.us_text(size.hand_us) for size in found.sizes if size.hand_us is not None],
        f"{found.mpi}, µs": [units.us_text(size.plain_us) for size in found.sizes],
        "with Lacuna, µs": [units.us_text(size.preloaded_us) for size in found.sizes],
        "ratio": [f"{size.ratio:.2f}" for size in found.sizes],
    }
    shown = {heading: cells for heading, cells in columns.items() if cells}
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in shown:
        table.add_column(heading, justify="left" if heading == "exchange" else "right")
    for row in zip(*shown.values(), strict=True):
        table.add_row(*row)
    console.print(table)
    console.print(f"In all {2 * found.pairs} runs each byte of the halos arrived, and no other byte changed.")
    console.print(conclusion(found), soft_wrap=True)


def conclusion(found: Demonstration) -> str:
    """One sentence that says whether this machine gains."""
    takes = f"with Lacuna the exchange takes {found.ratio:.2f} of the MPI's time"
    without = f"{found.ratio_low:.2f} to {found.ratio_high:.2f} without any one run"
    unclear = f"Whether this machine gains is unclear: {takes}"
    slowest = found.slowest_us
    match found.verdict:
        case Verdict.GAINS:
            return f"This machine gains: {takes} ({without})."
        case Verdict.LOSES:
            return f"This machine does not gain: {takes} ({without})."
        case Verdict.UNCLEAR if slowest > demo.WAITED_US:
            return (
                f"{unclear}, but ranks had to wait for CPUs ({units.us_text(slowest)} µs); other work on this machine, "
                "or more ranks than CPUs, may be why."
            )
        case Verdict.UNCLEAR if found.pairs == 1:
            return f"{unclear}, but there was time for one pair of runs only; --budget gives more."
        case Verdict.UNCLEAR:
            return f"{unclear} ({without})."
