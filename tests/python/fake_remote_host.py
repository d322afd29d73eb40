"""What the fake worker does between two machines: it connects and listens for real, with a handshake that proves
nothing, and measures nothing.

FAKE_WORKER_CALLS: for how many seconds it tries to connect. FAKE_WORKER_ALONE: a file that it makes when nobody
listens.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from pathlib import Path


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


class There:
    """The fake receiver's end of a connection."""

    def __init__(self, address: str, visit: str) -> None:
        deadline = time.monotonic() + float(os.environ.get("FAKE_WORKER_CALLS") or 300)
        while True:
            try:
                self._socket = socket.create_connection(_address(address), timeout=300)
                break
            except OSError as e:
                if time.monotonic() > deadline:
                    sys.exit(f"sender: peer_lost: {address}: {e}")
                if alone := os.environ.get("FAKE_WORKER_ALONE"):
                    Path(alone).touch()
                time.sleep(0.05)
        claim = {"secret": os.environ["LACUNA_SECRET"], "visit": visit}
        self._socket.sendall(json.dumps(claim).encode() + b"\n")
        answer = self._socket.makefile().readline().strip()
        if answer != "welcome":
            sys.exit(f"sender: permission: {answer or 'the other side has gone'}")

    def still(self) -> None:
        """Ends this process if the other one has gone."""
        if select.select([self._socket], [], [], 0)[0]:
            sys.exit("sender: peer_lost: the peer closed the bootstrap channel")

    def kill(self) -> None:
        """Has the other one die, and ends this process as the real one ends then."""
        self._socket.sendall(b"die\n")
        select.select([self._socket], [], [])
        self.still()

    def farewell(self) -> None:
        self._socket.sendall(b"farewell\n")


def listen(address: str, nic: dict[str, object]) -> None:
    """Ends with the first one that came, or with standard input."""
    server = socket.create_server(_address(address))
    print(json.dumps({"listening": {"at": address, "nic": nic}}), flush=True)
    first, visit = None, None
    others: list[socket.socket] = []
    while True:
        ready = select.select([server, sys.stdin, *([first] if first else [])], [], [])[0]
        if sys.stdin in ready:
            return
        if first and first in ready:
            said = first.recv(100)
            if said == b"die\n":
                os.abort()
            if said != b"farewell\n":
                sys.exit("receiver: peer_lost: it went before it was done")
            return
        if server not in ready:
            continue
        connection, _ = server.accept()
        claim = json.loads(connection.makefile().readline())
        if claim["secret"] != os.environ["LACUNA_SECRET"]:
            print(
                json.dumps({"refused": {"from": "127.0.0.1:1", "why": "the other side has another secret"}}), flush=True
            )
            connection.sendall(b"the other side has another secret\n")
        elif visit not in (None, claim["visit"]):
            connection.sendall(b"it is measuring with another\n")
        else:
            connection.sendall(b"welcome\n")
            if first is None:
                print(json.dumps({"met": {"from": "127.0.0.1:2"}}), flush=True)
                first, visit = connection, claim["visit"]
            else:
                others.append(connection)
