"""The machine, its NIC and a run in words, the same for terminal and report."""

from __future__ import annotations

from lacuna.guide.run_record import Run
from lacuna.units import bytes_text, us_text
from lacuna.worker.hardware import Indirect, Machine, Nic


def facts(machine: Machine, nic: Nic) -> list[tuple[str, str]]:
    """Pairs of a subject and what there is to say about it."""
    m = machine
    return [
        ("machine", f"{m.cpu}, {m.cpus} CPUs, {bytes_text(m.memory_bytes)} memory"),
        ("kernel", f"{m.kernel}, pages of {bytes_text(m.page_bytes)}"),
        ("caches", f"L1d {bytes_text(m.l1d_bytes)}, L2 {bytes_text(m.l2_bytes)}, last level {bytes_text(m.llc_bytes)}"),
        (
            f"NIC {nic.name}",
            f"max_sge {nic.max_sge:,}, max_sge_rd {nic.max_sge_rd:,}, max_send_wr {nic.max_send_wr:,}, "
            f"max_recv_wr {nic.max_recv_wr:,}, inline up to {bytes_text(nic.max_inline)}, "
            f"messages up to {bytes_text(nic.max_message_bytes)}{'; a device in software' if nic.emulated else ''}",
        ),
        ("indirect keys", _indirect(nic.indirect)),
    ]


def _indirect(i: Indirect) -> str:
    if not i.keys:
        return f"none: {i.note or 'one key stands for one region'}"
    return (
        f"{i.keys:,} keys of up to {i.entries:,} entries ({i.inline_entries:,} inline), or of {i.strided_entries:,} "
        f"strided entries with strides up to {bytes_text(i.stride)}"
    ) + (f" ({i.note})" if i.note else "")


def far_facts(run: Run) -> list[tuple[str, str]]:
    """The same of the other machine, if there is one."""
    if run.peer is None:
        return []
    m = run.peer.machine
    paths = "; ".join(path.note for path in run.peer.nic.paths if path.note)
    facts = [
        ("other machine", f"{run.peer.address}: {m.cpu}, {m.cpus} CPUs, {bytes_text(m.memory_bytes)} memory"),
        ("its kernel", f"{m.kernel}, pages of {bytes_text(m.page_bytes)}"),
        ("its NIC", f"{run.peer.nic.name}: {paths}"),
    ]
    if run.clock_us:
        text = f"two, set beside one another by messages: a one-way time may be wrong by {us_text(run.clock_us)} µs"
        facts.append(("clocks", text))
    return facts


def cells(count: int) -> str:
    return f"{count} cell" if count == 1 else f"{count} cells"
