"""What the machine may be like while a message is under way, and what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

PLAIN = "plain"
AGAIN = "again"


@dataclass(frozen=True)
class Condition:
    name: str
    words: str
    than: str = PLAIN
    """The condition that it differs from in one thing."""
    both_ways: bool = False
    cold: bool = False
    huge: bool = False
    busy: str = ""
    """What another process does meanwhile: "computes" on rank 1's CPU, "copies" memory there, or on a third CPU where
    there is one."""
    ranks: int = 2
    apart: bool = False
    """The ranks are on CPUs of two NUMA nodes."""
    handled: str = ""
    """What the choice makes of it."""


CONDITIONS = (
    Condition(PLAIN, "one way, warm, pages of 4 KiB, nobody else"),
    Condition(AGAIN, "the same once more: what noise alone comes to", handled="nothing differs"),
    Condition("cold", "no byte of the message is in a cache", cold=True, handled="modelled: Placement.cold"),
    Condition(
        "both_ways",
        "each rank sends and receives at once",
        both_ways=True,
        handled="ignored",
    ),
    Condition(
        "two_peers", "both ways with two peers at once", than="both_ways", both_ways=True, ranks=3, handled="ignored"
    ),
    Condition("computing", "another process computes on one rank's CPU", busy="computes", handled="ignored"),
    Condition("copying", "another process copies memory meanwhile", busy="copies", handled="ignored"),
    Condition("huge_pages", "memory in pages of 2 MiB", huge=True, handled="ignored"),
    Condition("huge_cold", "cold, in pages of 2 MiB", than="cold", cold=True, huge=True, handled="ignored"),
    Condition(
        "numa", "the ranks are on two NUMA nodes", apart=True, handled="modelled: classes of peers, by a message's time"
    ),
)


def condition(name: str) -> Condition:
    return next(c for c in CONDITIONS if c.name == name)


@dataclass(frozen=True)
class Way:
    """What is forced; nothing: Lacuna chooses."""

    method: str = ""
    path: str = ""

    @property
    def name(self) -> str:
        return self.method or (f"path {self.path}" if self.path else "automatic")

    @property
    def variables(self) -> dict[str, str]:
        forced = {"LACUNA_METHOD": self.method, "LACUNA_PATH": self.path}
        return {name: value for name, value in forced.items() if value}


AUTOMATIC = Way()
FORCED = (
    *(
        Way(method)
        for method in (
            "pack",
            "pack_pipelined",
            "pack_write",
            "gather_write",
            "scatter_read",
            "linked_write",
            "multi_write",
            "sgrs",
            "umr_send",
            "umr_write",
            "umr_read",
            "umr_chunked",
        )
    ),
    Way(path="mapped"),
    Way(path="kernel"),
)


@dataclass(frozen=True)
class Subject:
    """Equal blocks with a gap of twice their size behind each, as in the founding documents; on the receiver's side
    `coarser` times as long, and as many times fewer."""

    block: int
    count: int
    coarser: int = 1

    @property
    def payload(self) -> int:
        return self.block * self.count

    @property
    def name(self) -> str:
        to = f" into {self.count // self.coarser} of {self.block * self.coarser} B" if self.coarser > 1 else ""
        return f"{self.count} blocks of {self.block} B{to}"


SUBJECTS = (
    Subject(1024, 64),
    Subject(64, 1024),
    Subject(256, 1024),
    Subject(16384, 16),
    Subject(4096, 256),
    Subject(65536, 16),
    Subject(512, 512, coarser=16),
    Subject(1024, 4096),
)
QUICK_SUBJECTS = SUBJECTS[:4]
