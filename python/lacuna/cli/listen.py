"""`lacuna guide --listen`: the receivers of another machine's guide, until it is done."""

from __future__ import annotations

import time
from typing import NoReturn

import typer
from rich.console import Console

from lacuna.bench import command_exit
from lacuna.worker import remote_host
from lacuna.worker.client import find_worker
from lacuna.worker.listener import COMES_WITHIN, Listener, Met

OPTION = typer.Option(
    "--listen",
    help="Be the other machine: wait for a `lacuna guide HOST`, take part in what it measures, end with it. "
    f"[default: every address, port {remote_host.PORT}]",
)


def run(nic: str, host: str, start_within: float, come_within: float | None) -> NoReturn:
    """Ends the command."""
    address = remote_host.place(host, "--listen", remote_host.EVERYWHERE)
    secret = remote_host.read_secret()
    console = command_exit.console()
    with command_exit.guarded(), Listener(find_worker(), nic, address, secret, start_within) as listener:
        _show(console, listener)
        began, who = time.monotonic(), ""
        for event in listener.events(come_within or COMES_WITHIN):
            if isinstance(event, Met):
                began, who = time.monotonic(), event.who
                console.print(f"Measuring with {event.who}", markup=False)
            else:
                console.print(f"Refused {event.who}: {event.why}", markup=False, soft_wrap=True)
        console.print(f"Served {who} for {time.monotonic() - began:.0f} s; the results are there.", markup=False)
    raise typer.Exit


def _show(console: Console, listener: Listener) -> None:
    port = listener.at.rpartition(":")[2]
    notes = "; ".join(path.note for path in listener.nic.paths if path.note)
    console.print(f"NIC {listener.nic.name}: {notes}", markup=False, soft_wrap=True)
    console.print(
        f"Listening at {listener.at}. On the other machine, with the same secret: lacuna guide --nic NAME HOST:{port}",
        markup=False,
        soft_wrap=True,
    )
