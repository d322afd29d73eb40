"""The `lacuna` command."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from lacuna import __version__
from lacuna.cli import bench, compare, explain, guide, info, mpi, paper

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
app.command(help=explain.HELP)(explain.explain)
app.command(
    "mpirun",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)(mpi.run)


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


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass
