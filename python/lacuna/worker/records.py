"""What the worker says and what guide.json and bench.json hold, as types.

The rest of the package sees only these dataclasses. Their JSON is their members by name; a row, a look and a repeat
have the members of their subject beside their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from lacuna.worker.hardware import Machine, Nic, RemoteMachine
from lacuna.worker.protocol import Positive, SchemaError, Whole, member, read

PROTOCOL = 1
"""Version of the JSON lines that worker and command exchange."""

SCHEMA = 1
"""Version of guide.json and bench.json. Fields are only ever added to them."""

Shape = Literal["symmetric", "sender_finer", "sender_coarser"]
Cache = Literal["warm", "cold"]
SHAPES: tuple[Shape, ...] = get_args(Shape)

BY_HAND = ("by_hand_elements", "by_hand_memcpy")
"""What users write today: a loop over elements, or a memcpy for each block, around one send. Every gain is told
against the faster of the two, at its best path; they are never chosen."""

BASELINE = "hand packing"
"""The two together, in words."""


Way = tuple[str, str, str]
"""Method, path, notification."""


@dataclass(frozen=True)
class Method:
    name: str
    one_sided: bool
    notifies: tuple[str, ...]
    summary: str

    @property
    def by_hand(self) -> bool:
        return self.name in BY_HAND


@dataclass(frozen=True)
class Hello:
    """The worker's first line: who it is, where it runs, what it can do."""

    version: str
    machine: Machine
    nic: Nic
    methods: tuple[Method, ...]
    fault: str = ""
    """A fault that was planted to test the guide; never there in earnest."""
    peer: RemoteMachine | None = None
    """None where both processes are on this machine."""


@dataclass(frozen=True)
class Size:
    """One size of a DDTBench family."""

    payload_bytes: Whole
    dims: str
    span_bytes: Whole
    blocks: Whole


@dataclass(frozen=True)
class Family:
    """One layout of a corpus (DDTBench, transfers of AI systems) with its sizes, in the worker's order."""

    name: str
    sizes: Annotated[tuple[Size, ...], Meta(min_length=1)]
    summary: str = ""


@dataclass(frozen=True)
class Corpus:
    """The layouts of a suite."""

    corpus: tuple[Family, ...]


@dataclass(frozen=True)
class Subject:
    """What one cell measures; the part of a row that is the same for all methods."""

    experiment: str
    """`grid`, `ddtbench` or `ai` in the guide, the id of the experiment in a bench."""
    layout: str
    block_bytes: Whole
    block_count: Whole
    payload_bytes: Whole
    shape: Shape
    cache: Cache


@dataclass(frozen=True)
class Probe:
    """Fixed pieces of work: they take the same time whenever the machine is in the same state."""

    message_us: Positive
    """A message of 16 KiB between the two processes, one way: how far apart the two cores are."""
    sender_us: Positive
    """Arithmetic in the first-level cache: how much of its core the sender has."""
    receiver_us: Positive


@dataclass(frozen=True)
class Conditions:
    """How quiet the machine was while a cell was measured."""

    probes: tuple[Probe, ...]
    """Before, every now and then while it was measured, and after."""
    preempted: Whole
    stolen_ms: float
    setup_ms: float
    measuring_ms: float
    clock_us: float = 0.0
    """By how much one-way times may be wrong, since the clocks of two machines are set by messages; 0: one clock."""


@dataclass(frozen=True)
class Work:
    """What one side did for one transfer in the steady state."""

    work_requests: Whole
    receives: Whole
    sges: Whole
    doorbells: Whole
    completions: Whole
    keys_created: Whole
    keys_bound: Whole
    key_entries: Whole
    bytes_copied: Whole


@dataclass(frozen=True)
class Counters:
    send: Work
    receive: Work


@dataclass(frozen=True, kw_only=True)
class Row:
    """One verified measurement: one (method, path, notify) on one subject. Times are medians in microseconds."""

    subject: Subject
    nic: str
    method: str
    path: str
    notify: str
    latency_us: Positive
    ci_low_us: float | None = None
    ci_high_us: float | None = None
    ci_level: float | None = None
    cpu_send_us: float
    cpu_recv_us: float
    copy_send_us: float
    copy_recv_us: float
    """The part of the CPU times that went into packing and unpacking."""
    counters: Counters
    samples: Whole
    censored: bool
    reason: str | None = None
    behind: float | None = None
    """How many times as long as the best of its cell, from the rounds that have both; None where nothing was
    compared."""
    behind_low: float | None = None
    behind_high: float | None = None
    half_us: tuple[float, float] | None = None
    """Medians of every other visit: one half to choose by, the other to judge by."""
    visits: Whole = 0
    """Groups of samples, each in another round: what the interval is made of."""

    def __post_init__(self) -> None:
        if self.censored and self.reason is None:
            raise ValueError("a censored row has no reason")

    @property
    def way(self) -> Way:
        return self.method, self.path, self.notify

    @property
    def bandwidth_mbs(self) -> float:
        """Payload over latency, in 10^6 bytes a second."""
        return self.subject.payload_bytes / self.latency_us


def flat(record: object, *parts: str) -> dict[str, Any]:
    """The members of a record, and of these parts of it in their place."""
    members = dict(vars(record))
    return {name: value for part in parts for name, value in vars(members.pop(part)).items()} | members


def row_members(row: Row) -> dict[str, Any]:
    """As guide.json and bench.json have them."""
    members = {**flat(row, "subject"), "bandwidth_mbs": row.bandwidth_mbs}
    return members if row.reason is not None else {name: v for name, v in members.items() if name != "reason"}


def verified_row(said: Mapping[str, Any], subject: Subject, where: str) -> Row:
    """What the worker measured of a subject. Raises SchemaError."""
    if member(said, "verified", where) is not True:
        raise SchemaError("the worker sent a row that it did not verify")
    if member(said, "payload_bytes", where) != subject.payload_bytes:
        raise SchemaError(f"the row moved {said['payload_bytes']} bytes instead of {subject.payload_bytes}")
    return read(Row, {**said, "subject": vars(subject)}, where)


def read_hello(said: Mapping[str, Any]) -> Hello:
    """Raises SchemaError, also where the worker speaks another version."""
    spoken = member(said, "protocol", "hello")
    if spoken != PROTOCOL:
        raise SchemaError(f"the worker speaks protocol {spoken}, this command speaks {PROTOCOL}: reinstall Lacuna")
    return read(Hello, said, "hello")


@dataclass(frozen=True)
class Skip:
    """A mechanism that cannot do this subject, and the limit that forbids it."""

    method: str
    path: str
    notify: str
    reason: str


@dataclass(frozen=True)
class Failure:
    """A wrong byte or a transport error: it fails the run. A dead worker has no method, path and notify."""

    message: str
    layout: str
    method: str | None = None
    path: str | None = None
    notify: str | None = None

    def __str__(self) -> str:
        who = "/".join(part for part in (self.method, self.path) if part)
        notify = f" (notify {self.notify})" if self.notify and self.notify != "none" else ""
        return f"{who}{notify} on {self.layout}: {self.message}" if who else f"{self.layout}: {self.message}"
