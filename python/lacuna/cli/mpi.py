"""`lacuna mpirun` and `lacuna mpi`: MPI programs with Lacuna in front of their MPI."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lacuna.bench import command_exit
from lacuna.bench.delivery import Delivery
from lacuna.cli import mpi_demo
from lacuna.cli.options import JsonOption, command_app
from lacuna.mpi.interposer import ABIS, MpiError, abi_of_launcher, find_mpirun, preload_library, preloaded
from lacuna.worker.protocol import written

app = command_app(
    "mpi", help="The library that makes the datatypes of MPI programs fast (docs/start/mpi.md).", no_args_is_help=True
)
mpirun_app = command_app()

AbiOption = Annotated[
    str | None,
    typer.Option(
        "--abi",
        metavar="ABI",
        help=f"{' or '.join(ABIS)}, whatever the launcher is. [default: that of the launcher]",
        show_default=False,
    ),
]
MpirunOption = Annotated[
    str | None,
    typer.Option(
        "--mpirun", metavar="PATH", help="The launcher. [default: mpirun or mpiexec, on the PATH]", show_default=False
    ),
]


@app.callback()
def _commands() -> None:
    pass


@app.command()
def preload(abi: AbiOption = None, mpirun: MpirunOption = None) -> None:
    """Print what LD_PRELOAD has to name for the MPI whose mpirun is on the PATH.

    \b
    Examples:
      LD_PRELOAD=$(lacuna mpi preload) mpirun -n 2 ./app
      lacuna mpi preload --abi mpich

    Exit status: 0, 2 for wrong usage, 3 if there is no MPI, or none that is known.
    """
    print(_library(abi, mpirun))


@app.command()
def env(abi: AbiOption = None, mpirun: MpirunOption = None) -> None:
    """Print the line by which a batch script loads the library before the programs of the MPI on the PATH.

    What LD_PRELOAD names already keeps its place before the library.

    \b
    Examples:
      eval "$(lacuna mpi env)" && srun -n 64 ./app
      lacuna mpi env --abi mpich >> job.sh

    Exit status: 0, 2 for wrong usage, 3 if there is no MPI, or none that is known.
    """
    named = preloaded(_library(abi, mpirun), dict(os.environ))["LD_PRELOAD"]
    print(f"export LD_PRELOAD={shlex.quote(named)}")


app.command("demo")(mpi_demo.run)


@app.command("doctor")
def doctor_command(
    program: Annotated[
        str | None,
        typer.Argument(metavar="[PROGRAM]", help="An MPI program: what of its calls is taken.", show_default=False),
    ] = None,
    abi: AbiOption = None,
    mpirun: MpirunOption = None,
    data: JsonOption = None,
) -> None:
    """Say whether a program gains on this machine, and check both for what keeps the library from working.

    The first line says whether, and what to do if not. It goes by the program's file; `lacuna mpi demo` measures.

    \b
    Examples:
      lacuna mpi doctor
      lacuna mpi doctor ./app
      lacuna mpi doctor --json - ./app

    Exit status: 0, 1 if something keeps the library from working, 2 for wrong usage.
    """
    # Imported here: `lacuna mpirun` need not wait for it.
    from lacuna.mpi.inspection import doctor
    from lacuna.mpi.inspection.program import find_program

    delivery = Delivery(data, None)
    findings = doctor.look_at_machine(mpirun, abi)
    if program is not None:
        file = find_program(program)
        if file is None:
            raise typer.BadParameter(f"there is no {program}", param_hint="PROGRAM")
        findings += doctor.look_at_file(file, mpirun, abi)
    findings.insert(0, doctor.gain(findings, program))
    console = delivery.console()
    console.print(f"{findings[0].text}.", soft_wrap=True, markup=False)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for finding in findings[1:]:
        table.add_row(_MARKS[finding.verdict], Text(finding.what, style="bold"), finding.text)
    console.print(table)
    delivery.write_json(written(findings) + "\n")
    if any(finding.verdict == "wrong" for finding in findings):
        raise typer.Exit(command_exit.MEASUREMENT_FAILED)


_MARKS = {
    "ok": Text("ok", style="green"),
    "note": Text("note", style="yellow"),
    "wrong": Text("wrong", style="red bold"),
}


@mpirun_app.command(
    "mpirun",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)
def run(
    context: typer.Context,
    abi: AbiOption = None,
    mpirun: MpirunOption = None,
) -> None:
    """Run an MPI program with its datatypes made fast; everything else goes to mpirun as it is.

    \b
    Examples:
      lacuna mpirun -n 2 ./app
      lacuna mpirun --mpirun /opt/mpich/bin/mpiexec -n 4 python halo.py
      LACUNA_MPI_REPORT=1 lacuna mpirun -n 2 ./app

    \b
    Variables:
      LACUNA_MPI=off|pack|full   what is taken: nothing, MPI_Pack and MPI_Unpack, or messages too. [default: full]
      LACUNA_MPI_REPORT=1        print in MPI_Finalize what was done with each datatype and peer

    Options of this command come first. Exit status: mpirun's; 2 for wrong usage, 3 if there is no MPI.
    """
    if not context.args:
        raise typer.BadParameter("what shall run? lacuna mpirun -n 2 ./app")
    try:
        launcher = find_mpirun(mpirun)
        environment = preloaded(preload_library(abi or _abi_of(context.args, launcher)), dict(os.environ))
    except MpiError as e:
        command_exit.fail(str(e))
    os.execve(launcher, [str(launcher), *context.args], environment)


def _library(abi: str | None, mpirun: str | None) -> Path:
    try:
        return preload_library(abi or abi_of_launcher(find_mpirun(mpirun)))
    except MpiError as e:
        command_exit.fail(str(e))


def _abi_of(arguments: list[str], launcher: Path) -> str:
    """The program's own, where it says which: MPICH's launcher starts programs of two. Raises MpiError."""
    from lacuna.mpi.inspection.program import find_program, read_program

    for argument in arguments:
        file = find_program(argument)
        program = read_program(file) if file is not None else None
        if program is not None and program.abi is not None:
            return program.abi
    return abi_of_launcher(launcher)
