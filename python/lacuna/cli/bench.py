"""The `lacuna bench` commands: experiments to compare with what is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lacuna import __version__, clock
from lacuna.bench import session
from lacuna.bench.methods import experiments, terminal
from lacuna.bench.methods.experiments import Bench, Experiment
from lacuna.bench.session import JsonOption, NicOption, Pace
from lacuna.guide import plan
from lacuna.guide.plan import Cell
from lacuna.worker.client import Worker

_QUICK = Pace(budget=42, reserve=6, silence=15, max_samples=200)
_FULL = Pace(budget=140, reserve=10, silence=30, max_samples=400)
"""The promises are 45 s and 150 s for the whole command, on two slow cores."""

app = typer.Typer(
    name="bench",
    help="Experiments to compare with what is known.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _commands() -> None:
    pass


MpiOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mpi",
        metavar="[NAME=]MPICC",
        help="Compare with this MPI, by its compiler wrapper; may be given often. [default: mpicc, if on the PATH]",
        show_default=False,
    ),
]


@app.command()
def methods(
    quick: Annotated[bool, typer.Option("--quick", help="A third of the sizes, within 45 s instead of 150 s.")] = False,
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--experiment", metavar="ID", help="Only this experiment; may be given often.", show_default=False
        ),
    ] = None,
    data: JsonOption = None,
    output: Annotated[
        Path | None,
        session.output_option("bench"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            min=5,
            help="Wall time of the whole command; cells that do not fit are left out. [default: 140, with --quick 42]",
            show_default=False,
        ),
    ] = None,
    strided: Annotated[
        bool,
        typer.Option(
            "--strided-keys",
            help="Let one entry of an indirect key stand for many equal blocks. The documents' keys were lists.",
        ),
    ] = False,
    nic: NicOption = "local",
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.1,
            help="Give up when the worker is silent for so long. [default: 30, with --quick 15]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Reproduce the experiments of the papers behind Lacuna on this NIC, between two processes.

    Which method wins as blocks grow, as they get more, as they lie far apart; what a key for many blocks costs; what
    each side has to do. Each measurement is verified, and shown beside the finding that it is to be compared with.
    Nothing is written unless --json or --output says where.

    \b
    Examples:
      lacuna bench methods --quick
      lacuna bench methods --experiment F17a --experiment F20
      lacuna bench methods --output results/node17

    \b
    Exit status:
      0    all is well
      1    a method moved a wrong byte or failed; the files are written and name it
      2    wrong usage
      3    the worker is missing, died or fell silent; what was measured is written
      130  interrupted by Ctrl-C or SIGTERM; what was measured is written
    """
    started = clock.now()
    pace = _QUICK if quick else _FULL
    deadline = pace.deadline(started, budget)
    chosen = _chosen(wanted)
    if quick:
        chosen = experiments.thinned(chosen)
    session.prepare_json(data)
    if output:
        session.prepare(output)
    console = session.console(to_stderr=session.is_stdout(data))
    line = _line(quick=quick, wanted=[e.id for e in chosen] if wanted else [], budget=budget, strided=strided, nic=nic)
    options = () if strided else ("--list-keys",)

    def prepare(worker: Worker) -> tuple[Bench, list[Cell]]:
        h = worker.hello
        cells = plan.counted(experiments.cells(chosen), h)
        return Bench(__version__, session.created(), line, h.machine, h.nic, h.methods, experiments=chosen), cells

    outcome = session.measure(console, nic, replace(pace, silence=timeout or pace.silence), deadline, prepare, options)
    if outcome.result is not None:
        _deliver(console, outcome.result, data, output)
    session.finish(outcome.result, outcome.failure, written=bool(data or output))


@app.command()
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
    output: Annotated[Path | None, session.output_option("device")] = None,
    budget: Annotated[
        float,
        typer.Option("--budget", metavar="SECONDS", min=5, help="Wall time; rows that do not fit are left out."),
    ] = 240,
) -> None:
    """Measure copies between layouts of GPU memory against torch, CuPy, CUDA's own copies and a plain kernel.

    Every row is verified, and shown as a share of its limit: the time of a contiguous copy of as many bytes as the
    memory has to move. Torch and CuPy take part where they are installed and can express the layout.

    \b
    Examples:
      lacuna bench device --output results/h100
      lacuna bench device --groups transposes,ai
      lacuna bench device --from results --output results/h200

    \b
    Exit status:
      0    all is well
      1    something moved a wrong byte; the files are written and name it
      2    wrong usage
      3    there is no such GPU, or the bench is missing or died; what was measured is written
      130  interrupted by Ctrl-C or SIGTERM; what was measured is written
    """
    from lacuna.bench.device import command as device_command

    if measured:
        device_command.redraw(measured, data, output)
        return
    device_command.run(device=name, payload=payload, groups=groups, warm=warm, data=data, output=output, budget=budget)


@app.command()
def copy(
    quick: Annotated[bool, typer.Option("--quick", help="A sixth of the layouts, within 30 s without MPIs.")] = False,
    only: Annotated[
        str,
        typer.Option("--only", metavar="TEXT", help="Only layouts whose names hold this text.", show_default=False),
    ] = "",
    mpi: MpiOption = None,
    no_mpi: Annotated[bool, typer.Option("--no-mpi", help="Compare with no MPI.")] = False,
    data: JsonOption = None,
    output: Annotated[
        Path | None,
        session.output_option("copy"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            min=5,
            help="Wall time; rows that do not fit are left out and counted. [default: 900]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure pack, unpack and layout-to-layout copies on this CPU against loops written by hand, memcpy and MPIs.

    Every DDTBench layout at every size, and irregular ones: short blocks, lists in random and sorted order, arrays of
    structs, negative strides; with warm and with cold caches. All contenders of a row take turns in one process, and
    the bytes and the gaps of each are verified before and after. An MPI runs in a process of its own, against Lacuna.

    \b
    Examples:
      lacuna bench copy --quick
      lacuna bench copy --only FFT2 --no-mpi
      lacuna bench copy --mpi openmpi=/usr/bin/mpicc.openmpi --mpi /opt/mpich/bin/mpicc --json copy.json

    \b
    Exit status:
      0    all is well
      1    something moved a wrong byte, or an MPI could not be measured; the files are written and name it
      2    wrong usage
      3    the bench is missing, died or fell silent; what was measured is written
      130  interrupted by Ctrl-C or SIGTERM; what was measured is written
    """
    from lacuna.bench.copies import command as copies_command

    copies_command.run(
        quick=quick, only=only, mpi=mpi or [], no_mpi=no_mpi, data=data, output=output, budget=budget or 900
    )


@app.command()
def messages(
    quick: Annotated[
        bool, typer.Option("--quick", help="Two sizes of each family of layouts, within 60 s with four MPIs.")
    ] = False,
    only: Annotated[
        str,
        typer.Option(
            "--only", metavar="TEXT", help="Only cases whose suites and names hold this text.", show_default=False
        ),
    ] = "",
    forced: Annotated[
        bool,
        typer.Option(
            "--forced", help="Lacuna by every method and path that can be forced, too: what the choice loses."
        ),
    ] = False,
    mpi: MpiOption = None,
    data: JsonOption = None,
    output: Annotated[
        Path | None,
        session.output_option("messages"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            min=5,
            help="Wall time; cases that do not fit are left out and counted. [default: 900, with --quick 55]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure messages between two processes on this machine, through Lacuna and through MPIs.

    Contiguous messages of 8 B to 64 MiB, every DDTBench layout, and transfers of AI systems, against the MPI's own
    datatypes and against loops by hand around its contiguous send. Each MPI's mpiexec starts two processes, which are
    connected through Lacuna as well: in every round all contenders of a case take turns between the same buffers, and
    what arrives is verified in the first and in the last one.

    \b
    Examples:
      lacuna bench messages --quick
      lacuna bench messages --only contiguous --mpi openmpi=/usr/bin/mpicc.openmpi
      lacuna bench messages --mpi /opt/mpich/bin/mpicc --json messages.json

    \b
    Exit status:
      0    all is well
      1    something moved a wrong byte, or an MPI could not be measured; the files are written and name it
      2    wrong usage
      3    the bench is missing, or there is no MPI
      130  interrupted by Ctrl-C or SIGTERM; what was measured is written
    """
    from lacuna.bench.messages import command as message_command

    message_command.run(quick=quick, only=only, forced=forced, mpi=mpi or [], data=data, output=output, budget=budget)


@app.command()
def mpi(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer sizes and fewer runs, within five minutes with four MPIs.")
    ] = False,
    only: Annotated[
        str,
        typer.Option(
            "--only", metavar="TEXT", help="Only cases whose suites and names hold this text.", show_default=False
        ),
    ] = "",
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
    mpis: MpiOption = None,
    data: JsonOption = None,
    output: Annotated[
        Path | None,
        session.output_option("mpi"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            min=5,
            help="Wall time; cases that do not fit are left out and counted. [default: 2400, with --quick 300]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure the datatypes of MPIs on this machine, with Lacuna preloaded and without.

    Every DDTBench layout by DDTBench's four methods: manual (loops around contiguous messages), mpi_ddt (the
    datatype), mpi_pack_ddt (MPI_Pack and MPI_Unpack) and reference (as many contiguous bytes). Each MPI's mpiexec
    starts two jobs of two processes, one of them with Lacuna's library preloaded; in every round all methods of both
    take turns, and what arrives is verified in the first and in the last one. Besides: what Lacuna costs a message of
    8 bytes, and MPI_Type_commit.

    Then programs, compiled with each MPI's wrapper and run with and without the library by turns: collectives of 2, 4
    and 8 ranks, a halo exchange with subarrays in C and Fortran, the transpose of an FFT by alltoallw, an irregular
    gather with indexed blocks; each by datatype and packed by hand, verified. They are in examples/mini.

    \b
    Examples:
      lacuna bench mpi --quick
      lacuna bench mpi --only NAS_MG --mpi openmpi=/usr/bin/mpicc.openmpi
      lacuna bench mpi --only "fft2, 2 ranks"
      lacuna bench mpi --two-hosts --only pingpong
      lacuna bench mpi --mpi /opt/mpich/bin/mpicc --json mpi.json

    \b
    Exit status:
      0    all is well
      1    something moved a wrong byte, or an MPI could not be measured; the files are written and name it
      2    wrong usage
      3    the bench is missing, or there is no MPI
      130  interrupted by Ctrl-C or SIGTERM; what was measured is written
    """
    from lacuna.bench.mpi import command as mpi_bench_command

    mpi_bench_command.run(
        quick=quick,
        only=only,
        forced=forced,
        programs_too=programs,
        two_hosts=two_hosts,
        mpi=mpis or [],
        data=data,
        output=output,
        budget=budget,
    )


def _chosen(wanted: Sequence[str] | None) -> list[Experiment]:
    every = experiments.all_experiments()
    if not wanted:
        return every
    known = {e.id.lower() for e in every}
    for name in wanted:
        if name.lower() not in known:
            ids = ", ".join(e.id for e in every)
            raise typer.BadParameter(f"there is no experiment {name}. There are: {ids}", param_hint="--experiment")
    names = {name.lower() for name in wanted}
    return [e for e in every if e.id.lower() in names]


def _line(*, quick: bool, wanted: Sequence[str], budget: float | None, strided: bool, nic: str) -> str:
    """The command that would measure the same again."""
    line = "lacuna bench methods" + " --quick" * quick
    line += "".join(f" --experiment {name}" for name in wanted)
    if budget is not None:
        line += f" --budget {budget:g}"
    line += " --strided-keys" * strided
    return line if nic == "local" else f"{line} --nic {nic}"


def _deliver(console: Console, result: Bench, data: Path | None, output: Path | None) -> None:
    """Shows the tables last, to a reader who may leave."""

    def draw(directory: Path) -> list[Path]:
        # Imported here: matplotlib takes half a second, which a run without pictures need not spend.
        from lacuna.bench.methods import page as bench_report

        return bench_report.write(result, directory)

    files = session.deliver(console, result.to_json(), data, output, "bench.json", draw)
    terminal.show(console, result)
    session.show_written(console, files)
