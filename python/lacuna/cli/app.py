"""The `lacuna` command."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated

import typer

from lacuna import __version__
from lacuna.bench import command_exit
from lacuna.cli import bench, compare, config, explain, guide, info, mpi, paper

app = typer.Typer(
    name="lacuna",
    help="Moves data that has gaps, by the fastest way that this machine offers, and says which way that is.",
    epilog="Start with: lacuna guide --quick",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app)
app.add_typer(paper.app)
app.add_typer(mpi.app)
app.command(help=guide.HELP)(guide.guide)
app.command()(info.info)
app.command()(compare.compare)
app.command()(config.config)
app.command(help=explain.HELP)(explain.explain)
app.command(
    "mpirun",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)(mpi.run)


_MODULES = ("matplotlib", "scipy")
"""What only lacuna[guide] brings."""
_COMMANDS = frozenset({"bench", "compare", "guide", "paper"})


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
    if command not in _COMMANDS or "--help" in arguments:
        return
    if missing := [name for name in _MODULES if find_spec(name) is None]:
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
