"""`lacuna info`: this machine, its NIC and devices."""

from __future__ import annotations

from typing import Annotated

import typer

from lacuna import device
from lacuna._core import board_bytes, freed_memory_is_told, shared_bytes
from lacuna.bench import command_exit
from lacuna.cli.options import NicOption, command_app, worker_nic
from lacuna.report import guide_tables
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.protocol import written
from lacuna.worker.records import PROTOCOL

app = command_app()

_RANKS = (8, 32, 128)
"""On a node: with 8 or fewer a rank may share most, with 128 or more least."""
_SILENCE = 20.0
"""Seconds after which the worker is given up."""


@app.command()
def info(
    nic: NicOption = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show this machine, the NIC's paths and limits, the methods, the RDMA devices, libfabric's providers, the GPUs.

    Of each device: what it advertises and what its queue pairs were found to take, UMR or why not, memory windows,
    on-demand paging, ports, and the GID and MTU that connections would use. Of each provider: its limits, or why it is
    not used. Also whether registered memory may stay so: whether the kernel tells of memory that is freed; and how much
    memory a rank shares with the others of its node at most (LACUNA_SHARED_BYTES).

    \b
    Examples:
      lacuna info
      lacuna info --json | jq .nic.max_sge

    Exit status: 0, 2 for wrong usage, 3 if the worker is missing or fails.
    """
    with command_exit.guarded(), Worker(find_worker(), worker_nic(nic), _SILENCE) as worker:
        hello, devices, providers = worker.hello, worker.devices(), worker.providers()
    untold = freed_memory_is_told()
    with command_exit.guarded():
        shared = {ranks: (shared_bytes(ranks), board_bytes(ranks)) for ranks in _RANKS}
    gpus, no_gpus = device.look()
    if as_json:
        said = {
            "protocol": PROTOCOL,
            **vars(hello),
            "devices": devices,
            "providers": providers,
            "freed_memory_untold": untold,
            "shared_bytes": {str(ranks): most for ranks, (most, _) in shared.items()},
            "board_bytes": {str(ranks): boards for ranks, (_, boards) in shared.items()},
        }
        print(written({**said, "gpus": gpus, "no_gpus": no_gpus}, indent=2))
    else:
        guide_tables.show_info(command_exit.console(), hello, devices, providers, untold, shared)
        guide_tables.show_gpus(command_exit.console(), gpus, no_gpus)
