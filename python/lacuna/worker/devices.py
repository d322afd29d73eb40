"""The machine's RDMA devices and libfabric's providers, as `lacuna info` shows them."""

from __future__ import annotations

from dataclasses import dataclass

from lacuna.units import bytes_text, yes
from lacuna.worker.hardware import EMULATED
from lacuna.worker.protocol import Whole


@dataclass(frozen=True)
class DeviceLimits:
    """All 0 where they are not known."""

    max_sge: Whole
    max_sge_rd: Whole
    max_inline: Whole
    max_send_wr: Whole
    max_cqe: Whole
    max_message_bytes: Whole
    indirect_keys: Whole
    indirect_entries: Whole


@dataclass(frozen=True)
class Port:
    number: Whole
    state: str
    link_layer: str
    active_mtu: Whole
    max_mtu: Whole
    lid: Whole

    def __str__(self) -> str:
        lid = f", LID {self.lid}" if self.lid else ""
        return f"{self.number}: {self.state}, {self.link_layer}{lid}, MTU {self.active_mtu} (at most {self.max_mtu})"


@dataclass(frozen=True)
class Device:
    nic: str
    """What --nic takes."""
    driver: str
    firmware: str
    emulated: bool
    refusal: str
    """Why it cannot be used; empty if it can."""
    connection: str
    """Port, GID and MTU that its connections use."""
    advertised: DeviceLimits
    probed: DeviceLimits
    """What its queue pairs were found to take."""
    no_umr: str
    """Why it has no indirect keys; empty if it has."""
    windows: str
    """The kinds of its memory windows."""
    on_demand_paging: bool
    ports: tuple[Port, ...]

    def facts(self) -> list[tuple[str, str]]:
        """Pairs of a subject and what there is to say about it."""
        named = {"driver": self.driver, "firmware": self.firmware}
        about = ", ".join(f"{what} {name}" for what, name in named.items() if name)
        said, found = self.advertised, self.probed
        rows = [("device", EMULATED if self.emulated else about or "no driver is named")]
        rows += [("port", str(port)) for port in self.ports]
        if self.refusal:
            return [*rows, ("not usable", self.refusal)]
        indirect = f"yes: {found.indirect_keys:,} keys of up to {found.indirect_entries:,} entries"
        return [
            *rows,
            ("used", self.connection),
            ("max_sge", f"{said.max_sge:,} advertised, {found.max_sge:,} probed"),
            ("max_sge_rd", f"{said.max_sge_rd:,} advertised, {found.max_sge_rd:,} used"),
            ("max_send_wr", f"{said.max_send_wr:,} advertised, {found.max_send_wr:,} used"),
            ("inline", f"up to {bytes_text(found.max_inline)} probed"),
            ("messages", f"up to {bytes_text(said.max_message_bytes)}"),
            ("UMR", f"no: {self.no_umr}" if self.no_umr else indirect),
            ("memory windows", self._windows()),
            ("on-demand paging", yes(self.on_demand_paging)),
        ]

    def _windows(self) -> str:
        if not self.windows:
            return "no"
        return f"type {self.windows}" + ("" if "2" in self.windows else "; none of type 2")


@dataclass(frozen=True)
class Devices:
    none: str
    """Why there are none, in a line."""
    list: tuple[Device, ...]


_SOFTWARE = "in software: its timings say nothing about hardware"


@dataclass(frozen=True)
class Provider:
    """A provider of libfabric."""

    nic: str
    """What --nic takes."""
    emulated: bool
    connected: bool
    """By endpoints that notice when a peer is gone."""
    ordered: bool
    """Several requests may be under way."""
    refusal: str
    """Why it cannot be used; empty if it can."""
    limits: DeviceLimits

    def facts(self) -> list[tuple[str, str]]:
        """Pairs of a subject and what there is to say about it."""
        if self.refusal:
            return [("not usable", self.refusal)]
        found = self.limits
        return [
            ("provider", _SOFTWARE if self.emulated else "of hardware"),
            ("endpoints", "connected" if self.connected else "not connected"),
            ("requests", "in order, several at a time" if self.ordered else "one at a time: it promises no order"),
            ("max_sge", f"{found.max_sge:,}"),
            ("inline", f"up to {bytes_text(found.max_inline)}"),
            ("messages", f"up to {bytes_text(found.max_message_bytes)}"),
            ("UMR", "no: libfabric has none"),
        ]


@dataclass(frozen=True)
class Providers:
    none: str
    """Why there are none, in a line."""
    list: tuple[Provider, ...]
