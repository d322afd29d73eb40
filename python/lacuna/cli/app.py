"""The `lacuna` command. It loads what the command needs that is called, and nothing of the other commands."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from lacuna import __version__


class _Command(NamedTuple):
    place: str
    """Within lacuna.cli."""
    summary: str
    """The beginning of its help."""
    measures: bool = False
    """It needs what only lacuna[guide] brings."""


COMMANDS = {
    "guide": _Command("guide:app", "Measure every method on this machine and write the guide", measures=True),
    "info": _Command("info:app", "Show this machine, the NIC's paths and limits, the methods, the RDMA devices"),
    "compare": _Command("compare:app", "Compare two guides side by side: two machines, two versions", measures=True),
    "config": _Command("config:app", "Print how C and C++ programs are built against the library"),
    "explain": _Command("explain:app", "Show what a layout is, how it is copied, which way Lacuna would move it here"),
    "mpirun": _Command("mpi:mpirun_app", "Run an MPI program with its datatypes made fast"),
    "bench": _Command("bench:app", "Experiments to compare with what is known", measures=True),
    "paper": _Command("paper:app", "Reproduce the findings of the papers behind Lacuna", measures=True),
    "mpi": _Command("mpi:app", "The library that makes the datatypes of MPI programs fast (docs/start/mpi.md)"),
}
_MODULES = ("matplotlib", "scipy")
"""What only lacuna[guide] brings."""


def load(name: str) -> Any:
    """A command, with all that it needs to start."""
    return get_command(resolve_name(f"lacuna.cli.{COMMANDS[name].place}"))


class _Group(TyperGroup):
    """Lists what COMMANDS says, and calls what that names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, load(name) if name else listed, rest


app = typer.Typer(
    name="lacuna",
    cls=_Group,
    help="Moves data that has gaps, by the fastest way that this machine offers, and says which way that is.",
    epilog="Start with: lacuna guide --quick, or for MPI programs: lacuna mpi demo. "
    "`lacuna config --docs-dir` prints where docs is.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _listed() -> None:
    """Stands for a command in the list."""


for _name, _command in COMMANDS.items():
    app.command(_name, help=f"{_command.summary}.")(_listed)


def main() -> None:
    """The entry point."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no µ gets a question mark, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="lacuna")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"lacuna {__version__}")
        raise typer.Exit


def _require_extra(command: str | None, arguments: Sequence[str]) -> None:
    """Ends a command that measures or draws, before it starts, if what it needs is not installed. Its help is shown
    without."""
    if command is None or not COMMANDS[command].measures or "--help" in arguments:
        return
    if missing := [name for name in _MODULES if find_spec(name) is None]:
        from lacuna.bench import command_exit

        needed = " and ".join(missing)
        command_exit.fail(f"lacuna {command} needs {needed}: pip install 'lacuna[guide]'")


@app.callback()
def _options(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    _require_extra(context.invoked_subcommand, sys.argv)
