"""The `lacuna bench` commands: experiments to compare with what is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lacuna import clock
from lacuna.bench import command_exit
from lacuna.bench.delivery import Delivery, show_written
from lacuna.bench.device import HELP as DEVICE_HELP
from lacuna.bench.kv import HELP as KV_HELP
from lacuna.bench.methods import experiments, terminal
from lacuna.bench.methods.experiments import Experiment, MethodRun
from lacuna.bench.ranks import HELP as RANKS_HELP
from lacuna.cli import campaign_command
from lacuna.cli.campaign_command import Effort
from lacuna.cli.options import (
    BlockOption,
    JsonOption,
    MpiOption,
    NicOption,
    RanksOption,
    budget_option,
    command_app,
    command_line,
    exit_statuses,
    find_mpis,
    only_option,
    output_option,
    timeout_option,
    worker_nic,
)
from lacuna.guide import plan
from lacuna.guide.plan import Cell
from lacuna.paper.scale import HELP as SCALE_HELP
from lacuna.worker.client import Worker
from lacuna.worker.result import begun

_QUICK = Effort(budget=42, reserve=6, silence=15, max_samples=200)
_FULL = Effort(budget=140, reserve=10, silence=30, max_samples=400)
"""The promises are 45 s and 150 s for the whole command, on two slow cores."""

_ROWS_LEFT_OUT = "Wall time; rows that do not fit are left out and counted."
_FAILED = "something moved a wrong byte, or an MPI could not be measured; the files are written and name it"
_NO_MPI = "the bench is missing, or there is no MPI"
_DIED = "missing, died or fell silent; what was measured is written"
_CASES_LEFT_OUT = "Wall time; cases that do not fit are left out and counted."

app = command_app("bench", help="Experiments to compare with what is known.", no_args_is_help=True)


_METHODS_HELP = """Reproduce the experiments of the papers behind Lacuna on this NIC, between two processes.

Which method wins as blocks grow, as they get more, as they lie far apart; what a key for many blocks costs; what
each side has to do. Each measurement is verified, and shown beside the finding that it is to be compared with.
Nothing is written unless --json or --output says where.

\b
Examples:
  lacuna bench methods --quick
  lacuna bench methods --experiment F17a --experiment F20
  lacuna bench methods --output results/node17

""" + exit_statuses(
    "a method moved a wrong byte or failed; the files are written and name it", f"the worker is {_DIED}"
)


@app.command(help=_METHODS_HELP)
def methods(
    quick: Annotated[bool, typer.Option("--quick", help="A third of the sizes, within 45 s instead of 150 s.")] = False,
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--experiment", metavar="ID", help="Only this experiment; may be given often.", show_default=False
        ),
    ] = None,
    data: JsonOption = None,
    output: Annotated[Path | None, output_option("bench")] = None,
    budget: Annotated[float | None, budget_option("140, with --quick 42")] = None,
    strided: Annotated[
        bool,
        typer.Option(
            "--strided-keys",
            help="Let one entry of an indirect key stand for many equal blocks. The documents' keys were lists.",
        ),
    ] = False,
    nic: NicOption = "local",
    timeout: Annotated[float | None, timeout_option("30, with --quick 15")] = None,
) -> None:
    started, effort = clock.now(), _QUICK if quick else _FULL
    chosen = _chosen(wanted)
    if quick:
        chosen = experiments.thinned(chosen)
    delivery = Delivery(data, output)
    console = delivery.console()
    line = command_line(
        "bench methods",
        quick=quick,
        experiment=[e.id for e in chosen] if wanted else [],
        budget=budget,
        strided_keys=strided,
        nic=nic if nic != "local" else "",
    )

    def prepare(worker: Worker) -> tuple[MethodRun, list[Cell]]:
        h = worker.hello
        cells = plan.counted(experiments.cells(chosen), h)
        made = begun(MethodRun, line, h.machine, h.nic, h.methods)
        made.experiments = chosen
        return made, cells

    result, failure = campaign_command.measure(
        console,
        worker_nic(nic),
        replace(effort, silence=timeout or effort.silence),
        effort.deadline(started, budget),
        prepare,
        () if strided else ("--list-keys",),
    )
    if result is not None:
        files = delivery.write(console, result.to_json(), "bench.json", lambda folder: _draw_methods(result, folder))
        terminal.show(console, result)
        show_written(console, files)
    campaign_command.finish(result, failure, written=bool(data or output))


def _draw_methods(result: MethodRun, folder: Path) -> list[Path]:
    # Imported here: matplotlib takes half a second, which a run without pictures need not spend.
    from lacuna.bench.methods import page

    return page.write(result, folder)


def _chosen(wanted: Sequence[str] | None) -> list[Experiment]:
    every = list(experiments.EXPERIMENTS)
    if not wanted:
        return every
    known = {e.id.lower() for e in every}
    for name in wanted:
        if name.lower() not in known:
            ids = ", ".join(e.id for e in every)
            raise typer.BadParameter(f"there is no experiment {name}. There are: {ids}", param_hint="--experiment")
    names = {name.lower() for name in wanted}
    return [e for e in every if e.id.lower() in names]


@app.command(
    help=DEVICE_HELP
    + exit_statuses(
        "something moved a wrong byte; the files are written and name it",
        "there is no such GPU, or the bench is missing or died; what was measured is written",
    )
)
def device(
    name: Annotated[
        str,
        typer.Option("--device", metavar="NAME", help='"cuda:N", or "emulated": the kernels on the CPU, for tests.'),
    ] = "cuda:0",
    payload: Annotated[
        int, typer.Option("--payload", metavar="MIB", min=1, max=512, help="Payload of most rows, in MiB.")
    ] = 64,
    groups: Annotated[
        str,
        typer.Option(
            "--groups",
            metavar="A,B",
            help="Of vectors, lists, unequal, structs, transposes, sizes, ai, ddtbench, host, faces, processes.",
            show_default=False,
        ),
    ] = "",
    warm: Annotated[bool, typer.Option("--warm", help="Leave in the caches what the turn before left there.")] = False,
    measured: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Measure nothing: show and draw what `scripts/gpu_check.sh run` left here.",
            show_default=False,
        ),
    ] = None,
    data: JsonOption = None,
    output: Annotated[Path | None, output_option("device")] = None,
    budget: Annotated[
        float,
        typer.Option("--budget", metavar="SECONDS", min=5, help="Wall time; rows that do not fit are left out."),
    ] = 240,
) -> None:
    from lacuna.bench.device.command import DeviceRace, take_folder
    from lacuna.bench.device.page import DevicePresentation
    from lacuna.bench.device.rows import DeviceRun

    delivery = Delivery(data, output)
    line = command_line("bench device", device=name, payload=payload, groups=groups, warm=warm)
    result = begun(DeviceRun, line)
    race = DeviceRace(result, name, payload, groups, warm, budget)
    delivery.run(DevicePresentation(result), race if measured is None else lambda _: take_folder(result, measured))


_COPY_HELP = """
Measure pack, unpack and layout-to-layout copies on this CPU against loops written by hand, memcpy and MPIs.

Every DDTBench layout at every size, and irregular ones: short blocks, lists in random and sorted order, arrays of
structs, negative strides; with warm and with cold caches. All contenders of a row take turns in one process, and
the bytes and the gaps of each are verified before and after. An MPI runs in a process of its own, against Lacuna.

Then layouts that a seed draws, of nine families: permutation (of axes), record (arrays of structs to arrays),
channel, every_kth, reversal, list, triangle, halo, broadcast; also against NumPy, and torch where it is installed.

\b
Examples:
  lacuna bench copy --quick
  lacuna bench copy --only FFT2 --no-mpi
  lacuna bench copy --only permutation --seed 7 --rows 40
  lacuna bench copy --mpi openmpi=/usr/bin/mpicc.openmpi --mpi /opt/mpich/bin/mpicc --json copy.json

""" + exit_statuses(_FAILED, f"the bench is {_DIED}")


@app.command(help=_COPY_HELP)
def copy(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A sixth of the layouts, and of those from the seed, within 40 s without MPIs."),
    ] = False,
    only: Annotated[str, only_option("layouts whose names or families")] = "",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Draws other layouts of each family.")] = 1,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            metavar="N",
            min=0,
            help="Layouts that are drawn of each family, and three times as many permutations. [default: 10, with "
            "--quick 4]",
            show_default=False,
        ),
    ] = None,
    mpi: MpiOption = None,
    no_mpi: Annotated[bool, typer.Option("--no-mpi", help="Compare with no MPI.")] = False,
    data: JsonOption = None,
    output: Annotated[Path | None, output_option("copy")] = None,
    budget: Annotated[float | None, budget_option("1200", _ROWS_LEFT_OUT)] = None,
) -> None:
    from lacuna.bench.copies.command import DRAWN_ROWS, QUICK_DRAWN_ROWS, CopyRace
    from lacuna.bench.copies.page import CopyPresentation
    from lacuna.bench.copies.rows import Copies

    deadline = clock.now() + (budget or 1200)
    mpis = [] if no_mpi else find_mpis(mpi or [])
    delivery = Delivery(data, output)
    line = command_line("bench copy", mpis, quick=quick, only=only, seed=seed, rows=rows, no_mpi=no_mpi, budget=budget)
    result = begun(Copies, line)
    if rows is None:
        rows = QUICK_DRAWN_ROWS if quick else DRAWN_ROWS
    delivery.run(CopyPresentation(result), CopyRace(result, quick, only, seed, rows, mpis, deadline))


_MESSAGES_HELP = """Measure messages between two processes on this machine, through Lacuna and through MPIs.

Contiguous messages of 8 B to 64 MiB, every DDTBench layout, and transfers of AI systems, against the MPI's own
datatypes and against loops by hand around its contiguous send. Each MPI's mpiexec starts two processes, which are
connected through Lacuna as well: in every round all contenders of a case take turns between the same buffers, and
what arrives is verified in the first and in the last one.

\b
Examples:
  lacuna bench messages --quick
  lacuna bench messages --only contiguous --mpi openmpi=/usr/bin/mpicc.openmpi
  lacuna bench messages --mpi /opt/mpich/bin/mpicc --json messages.json

""" + exit_statuses(_FAILED, _NO_MPI)


@app.command(help=_MESSAGES_HELP)
def messages(
    quick: Annotated[
        bool, typer.Option("--quick", help="Two sizes of each family of layouts, within 60 s with four MPIs.")
    ] = False,
    only: Annotated[str, only_option("cases whose suites and names")] = "",
    forced: Annotated[
        bool,
        typer.Option(
            "--forced", help="Lacuna by every way, method and path that can be forced, too: what the choice loses."
        ),
    ] = False,
    mpi: MpiOption = None,
    data: JsonOption = None,
    output: Annotated[Path | None, output_option("messages")] = None,
    budget: Annotated[float | None, budget_option("900, with --quick 55", _CASES_LEFT_OUT)] = None,
) -> None:
    from lacuna.bench.messages.command import QUICK_SECONDS, SECONDS, MessageRace, find_bench
    from lacuna.bench.messages.page import MessagePresentation
    from lacuna.bench.messages.rows import Messages

    deadline = clock.now() + (budget or (QUICK_SECONDS if quick else SECONDS))
    mpis = find_mpis(mpi or [], needed=True)
    delivery = Delivery(data, output)
    with command_exit.guarded():
        find_bench()
    result = begun(Messages, command_line("bench messages", mpis, quick=quick, only=only, forced=forced, budget=budget))
    delivery.run(MessagePresentation(result), MessageRace(result, quick, only, forced, mpis, deadline))


_MPI_HELP = """Measure the datatypes of MPIs on this machine, with Lacuna preloaded and without.

Every DDTBench layout by DDTBench's four methods: manual (loops around contiguous messages), mpi_ddt (the
datatype), mpi_pack_ddt (MPI_Pack and MPI_Unpack) and reference (as many contiguous bytes). Each MPI's mpiexec
starts two jobs of two processes, one of them with Lacuna's library preloaded; in every round all methods of both
take turns, and what arrives is verified in the first and in the last one. Besides: what Lacuna costs a message of
8 bytes, and MPI_Type_commit.

Then programs, compiled with each MPI's wrapper and run with and without the library by turns: collectives of 2, 4
and 8 ranks, a halo exchange with subarrays in C and Fortran, the transpose of an FFT by alltoallw, an irregular
gather with indexed blocks; each by datatype and packed by hand, verified (examples/mini); then jobs of many ranks.

With --random N also N datatypes that are drawn by a seed, each through MPI_Send, MPI_Isend and thirteen collectives,
by the library's calls and the MPI's own by turns in one job.

\b
Examples:
  lacuna bench mpi --quick
  lacuna bench mpi --only NAS_MG --mpi openmpi=/usr/bin/mpicc.openmpi
  lacuna bench mpi --only "fft2, 2 ranks"
  lacuna bench mpi --two-hosts --only pingpong
  lacuna bench mpi --quick --random 50 --seed 7 --only "random types"
  lacuna bench mpi --mpi /opt/mpich/bin/mpicc --json mpi.json

""" + exit_statuses(_FAILED, _NO_MPI)


@app.command(help=_MPI_HELP)
def mpi(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer sizes and fewer runs, within five minutes with four MPIs.")
    ] = False,
    only: Annotated[str, only_option("cases whose suites and names")] = "",
    forced: Annotated[
        bool,
        typer.Option("--forced", help="Whatever the library can be told to do, too: what its choice loses."),
    ] = False,
    programs: Annotated[
        bool, typer.Option("--programs/--no-programs", help="Run the collectives and the mini-applications, too.")
    ] = True,
    two_hosts: Annotated[
        bool,
        typer.Option(
            "--two-hosts",
            help="Run programs between two network namespaces as two hosts, too; takes root's rights and iproute2.",
        ),
    ] = False,
    random: Annotated[
        int,
        typer.Option("--random", metavar="N", min=0, help="So many datatypes that are drawn by the seed, too."),
    ] = 0,
    seed: Annotated[
        int, typer.Option("--seed", metavar="S", min=0, max=(1 << 53) - 1, help="What --random draws by.")
    ] = 1,
    mpis: MpiOption = None,
    data: JsonOption = None,
    output: Annotated[Path | None, output_option("mpi")] = None,
    budget: Annotated[float | None, budget_option("2400, with --quick 300", _CASES_LEFT_OUT)] = None,
) -> None:
    from lacuna.bench.mpi import random_types
    from lacuna.bench.mpi.client import find_bench
    from lacuna.bench.mpi.command import FULL_RANDOM, QUICK_RANDOM, QUICK_SECONDS, SECONDS, MpiRace, variables
    from lacuna.bench.mpi.page import MpiPresentation
    from lacuna.bench.mpi.programs import MANY, QUICK_MANY, planned, planned_many
    from lacuna.bench.mpi.rows import MpiRun

    deadline = clock.now() + (budget or (QUICK_SECONDS if quick else SECONDS))
    found = find_mpis(mpis or [], needed=True)
    delivery = Delivery(data, output)
    with command_exit.guarded():
        find_bench()
    options = {"quick": quick, "only": only, "forced": forced, "no_programs": not programs, "two_hosts": two_hosts}
    options |= {"random": random, "seed": seed} if random else {}
    result = begun(MpiRun, command_line("bench mpi", found, **options, budget=budget))
    result.variables, result.seed = variables(), seed
    drawn = random_types.planned(random, seed, QUICK_RANDOM if quick else FULL_RANDOM, only)
    tasks = planned(inter_node=two_hosts, pattern=only) if programs else []
    many = planned_many(QUICK_MANY if quick else MANY, only) if programs else []
    delivery.run(MpiPresentation(result), MpiRace(result, quick, only, forced, tasks, many, drawn, found, deadline))


@app.command(help=RANKS_HELP + exit_statuses(_FAILED, "there is no MPI"))
def ranks(
    quick: Annotated[bool, typer.Option("--quick", help="2, 8 and 32 ranks, one run each; three minutes.")] = False,
    wanted: RanksOption = None,
    mpis: MpiOption = None,
    data: JsonOption = None,
    output: Annotated[Path | None, output_option("ranks")] = None,
    budget: Annotated[float | None, budget_option("1800", _CASES_LEFT_OUT)] = None,
) -> None:
    from lacuna.bench.ranks.command import QUICK_RANKS, RANKS, RanksRace
    from lacuna.bench.ranks.page import RanksPresentation
    from lacuna.bench.ranks.rows import RanksRun

    deadline = clock.now() + (budget or 1800)
    found = find_mpis(mpis or [], needed=True)
    delivery = Delivery(data, output)
    result = begun(RanksRun, command_line("bench ranks", found, quick=quick, ranks=wanted or [], budget=budget))
    chosen = sorted(set(wanted)) if wanted else QUICK_RANKS if quick else RANKS
    runs, rounds = (1, 3) if quick else (3, 5)
    delivery.run(RanksPresentation(result), RanksRace(result, chosen, runs, rounds, found, deadline))


@app.command(help=SCALE_HELP + exit_statuses("something moved a wrong byte", "there is no such profile"))
def scale(
    quick: Annotated[bool, typer.Option("--quick", help="4, 16 and 64 ranks, two block sizes; ten seconds.")] = False,
    wanted: RanksOption = None,
    blocks: BlockOption = None,
    data: JsonOption = None,
    output: Annotated[Path | None, output_option("scale")] = None,
    budget: Annotated[float | None, budget_option("900", _CASES_LEFT_OUT)] = None,
) -> None:
    from lacuna.paper.scale.command import race
    from lacuna.paper.scale.page import ScalePresentation
    from lacuna.paper.scale.rows import ScaleRun

    result = begun(ScaleRun, command_line("bench scale", quick=quick, ranks=wanted, block=blocks, budget=budget))
    Delivery(data, output).run(ScalePresentation(result), race(result, quick, wanted, blocks, budget))


@app.command(help=KV_HELP + exit_statuses(_FAILED, "the worker is missing"))
def kv(
    quick: Annotated[bool, typer.Option("--quick", help="Parts of 1 MiB instead of 8; 20 s.")] = False,
    only: Annotated[str, only_option("cases whose names")] = "",
    nics: Annotated[
        list[str] | None,
        typer.Option("--nic", metavar="NAME", help="May be given often. [default: three]", show_default=False),
    ] = None,
    data: JsonOption = None,
    output: Annotated[Path | None, output_option("kv")] = None,
    budget: Annotated[float | None, budget_option("300", _CASES_LEFT_OUT)] = None,
) -> None:
    from lacuna.bench.kv.command import NICS, KvRace
    from lacuna.bench.kv.page import KvPresentation
    from lacuna.bench.kv.rows import KvRun

    chosen, deadline = nics or NICS, clock.now() + (budget or 300)
    result = begun(KvRun, command_line("bench kv", quick=quick, only=only, nic=nics or [], budget=budget))
    race = KvRace(result, chosen, only, quick, deadline, worker_nic)
    Delivery(data, output).run(KvPresentation(result), race)
