"""The other machine: where it listens, and the secret that both machines know.

The secret comes from the environment or from a file that no other user can read, never from the command line, which all
users of a machine can see. It reaches the worker through its environment.
"""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

import typer

PORT = 18517
"""TCP, where `lacuna guide --listen` listens if it is not told otherwise."""

EVERYWHERE = "0.0.0.0"

LEAST_SECRET = 16
"""Bytes."""

_HINT = "LACUNA_SECRET"


@dataclass(frozen=True)
class RemoteHost:
    """A machine to measure with. All workers of one command have the same."""

    address: str
    """host:port"""
    secret: str = field(repr=False)
    visit: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def options(self) -> tuple[str, ...]:
        return ("--connect", self.address, "--visit", self.visit)

    @property
    def variables(self) -> dict[str, str]:
        return {"LACUNA_SECRET": self.secret}


def place(text: str, option: str, default_host: str = "") -> str:
    """host:port of HOST, HOST:PORT, an IPv6 address with or without brackets, or :PORT where there is a default."""
    host, port = text, str(PORT)
    if text.startswith("["):
        host, _, rest = text.partition("]")
        host += "]"
        if rest:
            port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    elif ":" in text:
        host = f"[{text}]"
    host = host or default_host
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise typer.BadParameter(f"{text}: a port is a number from 1 to 65535", param_hint=option)
    if not host.strip("[]"):
        raise typer.BadParameter(f"{text}: there is no host", param_hint=option)
    return f"{host}:{port}"


def read_secret() -> str:
    """LACUNA_SECRET, or what is in the file that LACUNA_SECRET_FILE names."""
    secret = os.environ.get("LACUNA_SECRET", "")
    where = "LACUNA_SECRET"
    if not secret and (named := os.environ.get("LACUNA_SECRET_FILE")):
        secret, where = _from_file(Path(named)), named
    if not secret:
        raise typer.BadParameter(
            "two machines need a secret that both know, in LACUNA_SECRET or in a file that LACUNA_SECRET_FILE names. "
            "`openssl rand -hex 32` makes one",
            param_hint=_HINT,
        )
    if len(secret.encode()) < LEAST_SECRET:
        raise typer.BadParameter(f"{where}: a secret has {LEAST_SECRET} bytes or more", param_hint=_HINT)
    return secret


def _from_file(file: Path) -> str:
    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise typer.BadParameter(f"{file}: others can read it; chmod 600 {file}", param_hint=_HINT)
        secret = file.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as e:
        raise typer.BadParameter(f"cannot read {file}: {e.strerror}", param_hint=_HINT) from e
    except UnicodeDecodeError as e:
        raise typer.BadParameter(f"{file} is no text", param_hint=_HINT) from e
    if "\0" in secret:
        raise typer.BadParameter(f"{file} is no text", param_hint=_HINT)
    return secret
