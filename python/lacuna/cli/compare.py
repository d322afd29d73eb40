"""`lacuna compare`: two guides side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lacuna.bench.delivery import Delivery, show_written
from lacuna.cli.options import JsonOption, command_app
from lacuna.guide.run_record import Guide, read_guide
from lacuna.report import comparison
from lacuna.worker.protocol import SchemaError, written

app = command_app()


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A guide.json, or the directory that holds one.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one: of another machine, version or run.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write compare.html here.", show_default=False),
    ] = None,
    data: JsonOption = None,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="End with 1 if the guides name different best methods that are more than 5 % apart, or if best "
            "times differ by more than the noise.",
        ),
    ] = False,
) -> None:
    """Compare two guides side by side: two machines, two versions, two runs. What is more than the noise is marked.

    Of one machine only cells count that both runs measured in the same state of it.

    \b
    Examples:
      lacuna compare monday/guide.json tuesday/guide.json
      lacuna compare node1 node2 --output node1-node2
      lacuna compare before after --exit-code || echo changed

    \b
    Exit status:
      0    all is well
      1    with --exit-code: the guides differ
      2    wrong usage, or a file that is no guide
    """
    guides = [_read(path, name) for path, name in ((a, "A"), (b, "B"))]
    delivery = Delivery(data, output)
    compared = comparison.compare(*guides)
    if not compared.pairs:
        raise typer.BadParameter("the two guides have no cell in common", param_hint="A B")
    console = delivery.console()
    # Imported here: matplotlib takes half a second, which `lacuna info` need not spend.
    from lacuna.report import comparison_page

    comparison_page.show(console, compared)
    delivery.write_json(written(compared.to_json()) + "\n")
    if output:
        show_written(console, comparison_page.write(compared, output))
    raise typer.Exit(1 if exit_code and (compared.beyond_close or compared.changed) else 0)


def _read(path: Path, name: str) -> Guide:
    file = path / "guide.json" if path.is_dir() else path
    try:
        return read_guide(file)
    except OSError as e:
        raise typer.BadParameter(f"cannot read {file}: {e.strerror}", param_hint=name) from e
    except SchemaError as e:
        raise typer.BadParameter(str(e), param_hint=name) from e
