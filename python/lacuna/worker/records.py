"""What the worker says and what guide.json and bench.json hold, as types.

Everything that crosses the process boundary is read here and nowhere else. The rest of the package sees only
dataclasses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lacuna.worker.fields import Fields, SchemaError

PROTOCOL = 1
"""Version of the JSON lines that worker and command exchange."""

SCHEMA = 1
"""Version of guide.json and bench.json. Fields are only ever added to them."""

Shape = Literal["symmetric", "sender_finer", "sender_coarser"]
Cache = Literal["warm", "cold"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
CACHES: tuple[Cache, ...] = get_args(Cache)
Mover = Literal["initiator", "both", "device"]
MOVERS: tuple[Mover, ...] = get_args(Mover)

BY_HAND = ("by_hand_elements", "by_hand_memcpy")
"""What users write today: a loop over elements, or a memcpy for each block, around one send. Every gain is told
against the faster of the two, at its best path; they are never chosen."""

BASELINE = "hand packing"
"""The two together, in words."""


@dataclass(frozen=True)
class Machine:
    cpu: str
    kernel: str
    cpus: int
    l1d_bytes: int
    l2_bytes: int
    llc_bytes: int
    page_bytes: int
    memory_bytes: int

    @staticmethod
    def read(f: Fields) -> Machine:
        return Machine(
            f.text("cpu"),
            f.text("kernel"),
            f.whole("cpus"),
            f.whole("l1d_bytes"),
            f.whole("l2_bytes"),
            f.whole("llc_bytes"),
            f.whole("page_bytes"),
            f.whole("memory_bytes"),
        )


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
    unit_bytes: int = 0
    """What it moves at once; 0: a request whole."""

    @staticmethod
    def read(f: Fields) -> DataPath:
        name = f.text("name"), f.flag("available"), f.flag("passive_target"), f.text("note")
        if "mover" not in f:  # a file of an earlier version
            return DataPath(*name)
        return DataPath(*name, f.flag("shared_only"), f.one_of("mover", MOVERS), f.whole("unit_bytes"))


@dataclass(frozen=True)
class Indirect:
    """What one key may stand for where a NIC can put many blocks behind one key; all 0 where it cannot."""

    keys: int
    entries: int
    inline_entries: int
    strided_entries: int
    stride: int
    """The largest stride of a strided entry, in bytes."""
    note: str = ""
    """With the device's name: why there are none, or how much they were tried."""

    @staticmethod
    def read(f: Fields) -> Indirect:
        return Indirect(
            f.whole("keys"),
            f.whole("entries"),
            f.whole("inline_entries"),
            f.whole("strided_entries"),
            f.whole("stride"),
            f.text("note") if "note" in f else "",
        )


@dataclass(frozen=True)
class Nic:
    name: str
    max_sge: int
    max_sge_rd: int
    """The same for a READ, whose limit some NICs set lower."""
    max_inline: int
    max_send_wr: int
    max_recv_wr: int
    max_message_bytes: int
    indirect: Indirect
    paths: tuple[DataPath, ...]
    emulated: bool = False
    """Whether it is a device in software, at either end: its timings say nothing about hardware."""

    @staticmethod
    def read(f: Fields) -> Nic:
        return Nic(
            f.text("name"),
            f.whole("max_sge"),
            f.whole("max_sge_rd"),
            f.whole("max_inline"),
            f.whole("max_send_wr"),
            f.whole("max_recv_wr"),
            f.whole("max_message_bytes"),
            Indirect.read(f.inside("indirect")),
            tuple(DataPath.read(p) for p in f.each("paths")),
            f.flag("emulated") if "emulated" in f else False,
        )


@dataclass(frozen=True)
class Peer:
    """The other machine, where the receiver is."""

    address: str
    machine: Machine
    nic: Nic

    @staticmethod
    def read(f: Fields) -> Peer:
        return Peer(f.text("address"), Machine.read(f.inside("machine")), Nic.read(f.inside("nic")))


@dataclass(frozen=True)
class Method:
    name: str
    one_sided: bool
    notifies: tuple[str, ...]
    summary: str

    @property
    def by_hand(self) -> bool:
        return self.name in BY_HAND

    @staticmethod
    def read(f: Fields) -> Method:
        return Method(f.text("name"), f.flag("one_sided"), f.texts("notifies"), f.text("summary"))


@dataclass(frozen=True)
class Hello:
    """The worker's first line: who it is, where it runs, what it can do."""

    version: str
    machine: Machine
    nic: Nic
    methods: tuple[Method, ...]
    fault: str = ""
    """A fault that was planted to test the guide; never there in earnest."""
    peer: Peer | None = None
    """None where both processes are on this machine."""

    @staticmethod
    def read(f: Fields) -> Hello:
        spoken = f.whole("protocol")
        if spoken != PROTOCOL:
            raise SchemaError(f"the worker speaks protocol {spoken}, this command speaks {PROTOCOL}: reinstall Lacuna")
        return Hello(
            f.text("version"),
            Machine.read(f.inside("machine")),
            Nic.read(f.inside("nic")),
            tuple(Method.read(m) for m in f.each("methods")),
            f.text("fault"),
            Peer.read(f.inside("peer")) if "peer" in f else None,
        )


@dataclass(frozen=True)
class Size:
    """One size of a DDTBench family."""

    payload_bytes: int
    dims: str
    span_bytes: int
    blocks: int

    @staticmethod
    def read(f: Fields) -> Size:
        return Size(f.whole("payload_bytes"), f.text("dims"), f.whole("span_bytes"), f.whole("blocks"))


@dataclass(frozen=True)
class Family:
    """One layout of a corpus (DDTBench, transfers of AI systems) with its sizes, in the worker's order."""

    name: str
    sizes: tuple[Size, ...]
    summary: str = ""

    @staticmethod
    def read(f: Fields) -> Family:
        summary = f.text("summary") if "summary" in f else ""
        family = Family(f.text("name"), tuple(Size.read(s) for s in f.each("sizes")), summary)
        if not family.sizes:
            raise SchemaError(f"the corpus lists {family.name} without a size")
        return family


@dataclass(frozen=True)
class Subject:
    """What one cell measures; the part of a row that is the same for all methods."""

    experiment: str
    """`grid`, `ddtbench` or `ai` in the guide, the id of the experiment in a bench."""
    layout: str
    block_bytes: int
    block_count: int
    payload_bytes: int
    shape: Shape
    cache: Cache

    @staticmethod
    def read(f: Fields) -> Subject:
        return Subject(
            f.text("experiment"),
            f.text("layout"),
            f.whole("block_bytes"),
            f.whole("block_count"),
            f.whole("payload_bytes"),
            f.one_of("shape", SHAPES),
            f.one_of("cache", CACHES),
        )


@dataclass(frozen=True)
class Probe:
    """Fixed pieces of work: they take the same time whenever the machine is in the same state."""

    message_us: float
    """A message of 16 KiB between the two processes, one way: how far apart the two cores are."""
    sender_us: float
    """Arithmetic in the first-level cache: how much of its core the sender has."""
    receiver_us: float

    @staticmethod
    def read(f: Fields) -> Probe:
        return Probe(f.positive("message_us"), f.positive("sender_us"), f.positive("receiver_us"))


@dataclass(frozen=True)
class Conditions:
    """How quiet the machine was while a cell was measured."""

    probes: tuple[Probe, ...]
    """Before, every now and then while it was measured, and after."""
    preempted: int
    stolen_ms: float
    setup_ms: float
    measuring_ms: float
    clock_us: float = 0.0
    """By how much one-way times may be wrong, since the clocks of two machines are set by messages; 0: one clock."""

    @staticmethod
    def read(f: Fields) -> Conditions:
        return Conditions(
            tuple(Probe.read(p) for p in f.each("probes")),
            f.whole("preempted"),
            f.number("stolen_ms"),
            f.number("setup_ms"),
            f.number("measuring_ms"),
            f.number("clock_us") if "clock_us" in f else 0.0,
        )


@dataclass(frozen=True)
class Work:
    """What one side did for one transfer in the steady state."""

    work_requests: int
    receives: int
    sges: int
    doorbells: int
    completions: int
    keys_created: int
    keys_bound: int
    key_entries: int
    bytes_copied: int

    @staticmethod
    def read(f: Fields) -> Work:
        return Work(
            f.whole("work_requests"),
            f.whole("receives"),
            f.whole("sges"),
            f.whole("doorbells"),
            f.whole("completions"),
            f.whole("keys_created"),
            f.whole("keys_bound"),
            f.whole("key_entries"),
            f.whole("bytes_copied"),
        )


@dataclass(frozen=True)
class Counters:
    send: Work
    receive: Work

    @staticmethod
    def read(f: Fields) -> Counters:
        return Counters(Work.read(f.inside("send")), Work.read(f.inside("receive")))


@dataclass(frozen=True)
class Row:
    """One verified measurement: one (method, path, notify) on one subject. Times are medians in microseconds."""

    subject: Subject
    nic: str
    method: str
    path: str
    notify: str
    latency_us: float
    ci_low_us: float | None
    ci_high_us: float | None
    ci_level: float | None
    cpu_send_us: float
    cpu_recv_us: float
    copy_send_us: float
    copy_recv_us: float
    """The part of the CPU times that went into packing and unpacking."""
    counters: Counters
    samples: int
    censored: bool
    reason: str | None = None
    behind: float | None = None
    """How many times as long as the best of its cell, from the rounds that have both; None where nothing was
    compared."""
    behind_low: float | None = None
    behind_high: float | None = None
    half_us: tuple[float, float] | None = None
    """Medians of every other visit: one half to choose by, the other to judge by."""
    visits: int = 0
    """Groups of samples, each in another round: what the interval is made of."""

    @staticmethod
    def read(f: Fields, subject: Subject) -> Row:
        if not f.flag("verified"):
            raise SchemaError("the worker sent a row that it did not verify")
        if f.whole("payload_bytes") != subject.payload_bytes:
            raise SchemaError(f"the row moved {f.whole('payload_bytes')} bytes instead of {subject.payload_bytes}")
        return Row.kept(f, subject)

    @staticmethod
    def kept(f: Fields, subject: Subject) -> Row:
        """From a file, which holds nothing that was not verified."""
        censored = f.flag("censored")
        return Row(
            subject,
            f.text("nic"),
            f.text("method"),
            f.text("path"),
            f.text("notify"),
            f.positive("latency_us"),
            f.maybe_number("ci_low_us"),
            f.maybe_number("ci_high_us"),
            f.maybe_number("ci_level"),
            f.number("cpu_send_us"),
            f.number("cpu_recv_us"),
            f.number("copy_send_us"),
            f.number("copy_recv_us"),
            Counters.read(f.inside("counters")),
            f.whole("samples"),
            censored,
            f.text("reason") if censored else None,
            f.maybe_number("behind"),
            f.maybe_number("behind_low"),
            f.maybe_number("behind_high"),
            _halves(f),
            f.whole("visits") if "visits" in f else 0,
        )

    @property
    def bandwidth_mbs(self) -> float:
        """Payload over latency, in 10^6 bytes a second."""
        return self.subject.payload_bytes / self.latency_us

    def to_json(self) -> dict[str, object]:
        # Not by asdict(), which copies each of thousands of rows deeply.
        flat: dict[str, object] = {**vars(self.subject), **vars(self)}
        del flat["subject"]
        flat["counters"] = {side: dict(vars(work)) for side, work in vars(self.counters).items()}
        if self.reason is None:
            del flat["reason"]
        return {**flat, "bandwidth_mbs": self.bandwidth_mbs}


def _halves(f: Fields) -> tuple[float, float] | None:
    if f.lacks("half_us"):
        return None
    halves = f.numbers("half_us")
    if len(halves) != 2:
        raise SchemaError(f"a row has {len(halves)} halves")
    return halves[0], halves[1]


@dataclass(frozen=True)
class Skip:
    """A mechanism that cannot do this subject, and the limit that forbids it."""

    method: str
    path: str
    notify: str
    reason: str

    @staticmethod
    def read(f: Fields) -> Skip:
        return Skip(f.text("method"), f.text("path"), f.text("notify"), f.text("reason"))


@dataclass(frozen=True)
class Failure:
    """A wrong byte or a transport error: it fails the run. A dead worker has no method, path and notify."""

    message: str
    layout: str
    method: str | None = None
    path: str | None = None
    notify: str | None = None

    @staticmethod
    def read(f: Fields) -> Failure:
        return Failure(f.text("message"), f.text("layout"), f.text("method"), f.text("path"), f.text("notify"))

    def __str__(self) -> str:
        who = "/".join(part for part in (self.method, self.path) if part)
        notify = f" (notify {self.notify})" if self.notify and self.notify != "none" else ""
        return f"{who}{notify} on {self.layout}: {self.message}" if who else f"{self.layout}: {self.message}"
