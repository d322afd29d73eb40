"""What the worker says of machines and their NICs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lacuna.worker.protocol import Whole

Mover = Literal["initiator", "both", "device"]

EMULATED = (
    "This is Soft-RoCE, or another RDMA device in software: its timings say nothing about hardware. What was moved, "
    "and by how many requests, holds."
)


@dataclass(frozen=True)
class Machine:
    cpu: str
    kernel: str
    cpus: Whole
    l1d_bytes: Whole
    l2_bytes: Whole
    llc_bytes: Whole
    page_bytes: Whole
    memory_bytes: Whole


@dataclass(frozen=True)
class DataPath:
    """One way in which a NIC carries bytes; `passive_target`: it works while the peer's CPU is elsewhere."""

    name: str
    available: bool
    passive_target: bool
    note: str
    shared_only: bool = False
    """Whether it reaches only memory that Lacuna allocated."""
    mover: Mover = "initiator"
    """Whose time moving takes: initiator, both, device."""
    unit_bytes: Whole = 0
    """What it moves at once; 0: a request whole."""


@dataclass(frozen=True)
class Indirect:
    """What one key may stand for where a NIC can put many blocks behind one key; all 0 where it cannot."""

    keys: Whole
    entries: Whole
    inline_entries: Whole
    strided_entries: Whole
    stride: Whole
    """The largest stride of a strided entry, in bytes."""
    note: str = ""
    """With the device's name: why there are none, or how much they were tried."""


@dataclass(frozen=True)
class Nic:
    name: str
    max_sge: Whole
    max_sge_rd: Whole
    """The same for a READ, whose limit some NICs set lower."""
    max_inline: Whole
    max_send_wr: Whole
    max_recv_wr: Whole
    max_message_bytes: Whole
    indirect: Indirect
    paths: tuple[DataPath, ...]
    emulated: bool = False
    """Whether it is a device in software, at either end: its timings say nothing about hardware."""


@dataclass(frozen=True)
class RemoteMachine:
    """The other machine, where the receiver is."""

    address: str
    machine: Machine
    nic: Nic
