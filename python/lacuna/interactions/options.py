"""The options of `lacuna bench interactions`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lacuna.command import JsonOption, output_option


def interactions(
    quick: Annotated[bool, typer.Option("--quick", help="Half of the cases, within 60 s instead of 300 s.")] = False,
    nics: Annotated[
        list[str] | None,
        typer.Option(
            "--nic",
            metavar="NAME",
            help="local, model or model:PLATFORM; may be given often. [default: local, model]",
            show_default=False,
        ),
    ] = None,
    data: JsonOption = None,
    output: Annotated[
        Path | None,
        output_option("interactions"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            min=5,
            help="Wall time on local; cases that do not fit are left out and counted. [default: 300, with --quick 60]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Find out whether what the choice does not know of changes which way is best.

    Messages between processes, each forced to go by every method, and by paths mapped and kernel, in turn: with their
    data in no cache, both ways at once, with two peers, beside a process that computes or copies on one rank's CPU, in
    pages of 2 MiB, across NUMA nodes. In every round all ways have turns under all conditions, and what arrives is
    verified, gaps too. A condition matters if the way that is best without it loses 3 % or more with it, in the mean.
    What cannot be had on this machine is skipped, and said.

    \b
    Examples:
      lacuna bench interactions --quick
      lacuna bench interactions --nic model:connectx5-rocev2 --output DIR
      lacuna bench interactions --nic local --json interactions.json

    \b
    Exit status:
      0    all is well
      1    something moved a wrong byte, or a process died; the files are written and name it
      2    wrong usage
      3    one CPU is too few for processes that send one another messages
      130  interrupted by Ctrl-C or SIGTERM; what was measured is written
    """
    from lacuna.interactions import command

    command.run(quick=quick, nics=nics or ["local", "model"], data=data, output=output, budget=budget)
