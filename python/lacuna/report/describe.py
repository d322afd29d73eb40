"""The machine, its NIC and a run in words, the same for terminal and report."""

from __future__ import annotations

from collections.abc import Sequence

from lacuna.guide.rules import Rule, range_text
from lacuna.guide.run_record import Run
from lacuna.report.row_tables import MethodCell, RowTable
from lacuna.units import bytes_text, us_text, yes
from lacuna.worker.hardware import Indirect, Machine, Nic
from lacuna.worker.records import Method


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


def paths(nic: Nic) -> RowTable:
    rows = [(path.name, yes(path.available), yes(path.passive_target), path.note) for path in nic.paths]
    return RowTable(("path", "available", "passive target", "note"), rows, texts=4)


def methods(found: Sequence[Method]) -> RowTable:
    rows = [
        (MethodCell(m.name), "one-sided" if m.one_sided else "two-sided", ", ".join(m.notifies), m.summary)
        for m in found
    ]
    return RowTable(("method", "kind", "notification", "what it does"), rows, texts=4)


def rule_table(rule: Rule) -> RowTable:
    rows = [
        (
            range_text(part.blocks, rule.grid.blocks, bytes_text),
            range_text(part.counts, rule.grid.counts, str),
            MethodCell(part.combo[0], f" on {part.combo[1]}"),
        )
        for part in rule.parts
    ]
    return RowTable(("block size", "number of blocks", "use"), rows, texts=3)


def cells(count: int) -> str:
    return f"{count} cell" if count == 1 else f"{count} cells"
