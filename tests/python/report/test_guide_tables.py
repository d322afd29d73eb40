"""What the terminal shows, also where it has no colours and little room."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from conftest import ddtbench_subject, guide, row
from rich.console import Console

from lacuna.guide.run_record import Guide
from lacuna.report import guide_tables
from lacuna.units import bytes_text, gain_text, us_text
from lacuna.worker.devices import Devices, Providers
from lacuna.worker.records import Failure, Hello, Skip

pytestmark = pytest.mark.check


def shown(result: Guide, width: int = 120) -> str:
    out = io.StringIO()
    guide_tables.show(Console(file=out, width=width, highlight=False), result)
    return out.getvalue()


def test_tables_name_best_path_gain_and_ties(full_guide: Guide) -> None:
    text = shown(full_guide)
    assert "Fastest method: same layout on both sides, warm caches" in text
    assert "multi_write" in text
    assert "mapped 1.0× ~" in text
    assert "NAS_MG_x 130x66x66" in text
    assert "sgrs/mapped  20.0" in text
    assert "Censored: multi_write/kernel in 8 cells, multi_write/mapped in 2 cells" in text


def test_notes_name_what_is_missing(full_guide: Guide) -> None:
    full_guide.skips[Skip("sgrs", "kernel", "none", "more pieces than max_recv_wr")] = 3
    full_guide.unmeasured.append("1 MiB × 16, symmetric, warm: no time left for it")
    text = shown(full_guide)
    assert "Not possible in some cells: sgrs/kernel" in text
    assert "Left out for time: 1 cell of the plan" in text


def test_lines_keep_to_the_width_and_carry_no_escapes(full_guide: Guide) -> None:
    for width in (60, 80, 100, 120):
        lines = shown(full_guide, width).splitlines()
        assert max(map(len, lines)) <= width
        assert not any("\x1b" in line for line in lines)


def test_narrow_terminal_breaks_columns_not_words(full_guide: Guide) -> None:
    text = shown(full_guide, 42)
    assert text.count("16 B") > shown(full_guide, 120).count("16 B")
    assert "…" not in text.split("DDTBench")[0]


def test_long_names_give_way_to_numbers(full_guide: Guide) -> None:
    long = " and a name as long as those of the struct layouts, which hold the dims of several arrays"
    full_guide.rows[:] = [
        replace(row, latency_us=row.latency_us * 1234.5, subject=replace(row.subject, layout=row.subject.layout + long))
        for row in full_guide.rows
        if row.subject.experiment == "ddtbench"
    ]
    table = shown(full_guide)
    assert "24,690" in table
    assert table.count("…") == len({row.subject.layout for row in full_guide.rows})


@pytest.mark.parametrize("width", [60, 71, 72, 80, 111, 112, 120])
def test_ddtbench_table_keeps_its_numbers_at_every_width(width: int) -> None:
    large = ddtbench_subject("FFT2 1536 on 2 with " + "many words " * 10, 18 << 20, 1179648)
    rows = [
        row(large, "by_hand_memcpy", 943_718.0),
        row(large, "pack_pipelined", 377_487.0),
        row(large, "umr_chunked", 379_375.0, path="kernel"),
    ]
    lines = shown(guide(*rows), width).splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for word in ("18 MiB", "1,179,648", "pack_pipelined", "377,487", "943,718", "2.5× ~"):
        assert word in text
    assert ("umr_chunked" in text and "379,375" in text) == (width >= 72)


def test_a_baseline_that_was_censored_says_so() -> None:
    s = ddtbench_subject()
    assert "cens." in shown(guide(row(s, "by_hand_memcpy", 9e4, censored=True), row(s, "sgrs", 1.0)), 80)


def test_an_empty_guide_is_no_trouble() -> None:
    empty = guide()
    empty.errors.append(Failure("the worker died", "16 B × 4"))
    assert shown(empty) == ""


def test_info_shows_paths_limits_and_methods(full_guide: Guide) -> None:
    out = io.StringIO()
    hello = Hello("0.1.0", full_guide.machine, full_guide.nic, full_guide.methods)
    guide_tables.show_info(
        Console(file=out, width=100),
        hello,
        Devices("no RDMA device", ()),
        Providers("no libfabric", ()),
        "no such call",
        {8: (256 << 20, 32 << 20), 128: (16 << 20, 2 << 20)},
    )
    text = out.getvalue()
    for word in (
        "Invented CPU <9000>",
        "max_sge 1,024",
        "passive target",
        "32 MiB of 8, 2 MiB of 128",
        "mapped",
        "one-sided",
        "none, imm",
        "indirect keys",
        "end with their transfer, or with a handle, where a NIC pins memory: no such call",
        "256 MiB of 8, 16 MiB of 128",
    ):
        assert word in " ".join(text.split())


def test_numbers_as_people_read_them() -> None:
    assert [bytes_text(n) for n in (0, 16, 1023, 1024, 1536, 90804, 1 << 20)] == [
        "0 B",
        "16 B",
        "1023 B",
        "1 KiB",
        "1.5 KiB",
        "88.7 KiB",
        "1 MiB",
    ]
    assert [us_text(t) for t in (0.853, 12.34, 123.4, 1234.0, 123456.0)] == ["0.85", "12.3", "123", "1,230", "123,456"]
    assert [gain_text(g) for g in (1.0, 2.34, 9.96, 13.6)] == ["1.0×", "2.3×", "10×", "14×"]
