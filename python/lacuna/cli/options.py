"""Options that several commands have, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lacuna.bench import command_exit
from lacuna.mpi import installations
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.paper import profiles
from lacuna.worker.process import WorkerError


def command_app(name: str | None = None, **settings: Any) -> typer.Typer:
    """A command, or a group of them, as all of Lacuna's are."""
    return typer.Typer(name=name, add_completion=False, rich_markup_mode=None, **settings)


NicOption = Annotated[
    str,
    typer.Option(
        "--nic",
        metavar="NAME",
        help="The NIC: local; verbs:DEVICE, an RDMA device (docs/start/rdma.md); ofi:PROVIDER "
        "(docs/start/ofi.md); model or model:PLATFORM, a simulated one (docs/design/model.md). `lacuna info` describes "
        "it.",
    ),
]

JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the data here as well; - is standard output, and messages go to standard error then.",
        show_default=False,
    ),
]

RanksOption = Annotated[
    list[int] | None,
    typer.Option("--ranks", metavar="N", min=2, max=1024, help="So many; may be given often.", show_default=False),
]

BlockOption = Annotated[
    list[int] | None,
    typer.Option("--block", metavar="BYTES", min=8, help="Of a block; may be given often.", show_default=False),
]


def mpi_option(text: str) -> Any:
    return typer.Option("--mpi", metavar="[NAME=]MPICC", help=text, show_default=False)


MpiOption = Annotated[
    list[str] | None,
    mpi_option("Compare with this MPI, by its compiler wrapper; may be given often. [default: mpicc, if on the PATH]"),
]


HostsOption = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="HOST,HOST",
        help="With --mpi: messages between these two hosts, too, where the MPI's launcher starts ranks. They have this "
        "folder and this package at the same places.",
    ),
]


def exit_statuses(
    failed: str,
    missing: str,
    kept: str = "what was measured is written",
    *,
    well: str = "all is well",
    wrong: str = "wrong usage",
) -> str:
    """The end of a command's help. `failed` is status 1, `missing` status 3; `kept`: when the command is interrupted,
    which commands without it do not look out for."""
    texts = {0: well, 1: failed, 2: wrong, 3: missing}
    if kept:
        texts[command_exit.INTERRUPTED] = f"interrupted by Ctrl-C or SIGTERM; {kept}"
    lines = (f"  {status:<3}  {text}\n" for status, text in texts.items())
    return "\b\nExit status:\n" + "".join(lines)


def output_option(name: str, pictures: str = "") -> Any:
    """For a command that writes NAME.json, a page and a picture, or several."""
    files = f"Write {name}.json, {name}.html and {pictures or f'{name}.png'} here; made if it is not there."
    return typer.Option("--output", "-o", metavar="DIR", help=files, show_default=False)


def budget_option(
    default: str, text: str = "Wall time of the whole command; cells that do not fit are left out."
) -> Any:
    return typer.Option("--budget", metavar="SECONDS", min=5, help=f"{text} [default: {default}]", show_default=False)


def timeout_option(default: str) -> Any:
    text = f"Give up when the worker is silent for so long. [default: {default}]"
    return typer.Option("--timeout", metavar="SECONDS", min=0.1, help=text, show_default=False)


def only_option(what: str) -> Any:
    return typer.Option("--only", metavar="TEXT", help=f"Only {what} hold this text.", show_default=False)


def is_simulated(nic: str) -> bool:
    return nic == "model" or nic.startswith("model:")


def worker_nic(nic: str) -> str:
    """The name that the worker takes: a simulated platform by its file, so that it is found from anywhere."""
    if not is_simulated(nic):
        return nic
    name = nic.removeprefix("model").removeprefix(":") or profiles.PLATFORM_2
    if "/" in name:
        return nic
    try:
        return f"model:{profiles.load(name).path}"
    except WorkerError as e:
        raise typer.BadParameter(str(e), param_hint="--nic") from e


def find_mpis(wanted: Sequence[str], *, needed: bool = False) -> list[MpiInstallation]:
    """What --mpi names. `needed`: without one the command ends."""
    try:
        found = installations.find(wanted)
    except MpiInstallationError as e:
        raise typer.BadParameter(str(e), param_hint="--mpi") from e
    if needed and not found:
        command_exit.fail(installations.NO_MPI)
    return found


def two_hosts_of(said: str | None) -> tuple[str, str] | None:
    """What --hosts names."""
    if said is None:
        return None
    match said.split(","):
        case [one, other] if one and other and one != other:
            return one, other
    raise typer.BadParameter(f"{said!r} names no two hosts; node17,node18 does", param_hint="--hosts")


def command_line(name: str, mpis: Sequence[MpiInstallation] = (), **options: object) -> str:
    """The command that would measure the same again: options that are set, in this order."""
    line = f"lacuna {name}"
    for option, value in options.items():
        flag = f" --{option.replace('_', '-')}"
        match value:
            case None | False | "":
                continue
            case True:
                line += flag
            case float():
                line += f"{flag} {value:g}"
            case list():
                line += "".join(f"{flag} {one}" for one in value)
            case str() if option == "only":
                line += f"{flag} {value!r}"
            case _:
                line += f"{flag} {value}"
    return line + "".join(f" --mpi {mpi.name}={mpi.mpicc}" for mpi in mpis)
