"""What `lacuna explain` prints, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from lacuna import Layout, _core
from lacuna.cli.app import app
from lacuna.cli.explain import MOST_RUNS
from lacuna.layout_text import CONSTRUCTORS
from lacuna.worker.client import find_worker
from lacuna.worker.process import WorkerError
from lacuna.worker.records import BY_HAND

VECTOR = "vector(16, 4, 100, double)"
STAGES = {"post", "fetch", "translate", "copy", "wire", "unpack", "register", "notify"}


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


def data(*arguments: str) -> dict[str, Any]:
    ended = explain(*arguments, "--json", "-")
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert isinstance(found, dict)
    return found


def rows(text: str) -> dict[str, str]:
    """The labelled lines."""
    return {line[2:14].strip(): line[16:] for line in text.splitlines() if line[:2] == "  " and line[2:14].strip()}


def test_a_layout_is_explained() -> None:
    ended = explain(VECTOR)
    assert ended.exit_code == 0
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[0] == "vector(count=16, blocklength=4, stride=100, old=double)"
    found = rows(ended.stdout)
    assert found["bytes"] == "512 B"
    assert found["runs"] == "16, 32.0 B on average"
    assert found["extent"] == found["true extent"] == "12,032 B (11.8 KiB) from 0"
    assert found["form"] == "16 x +800 B { 32 B }"
    assert found["instructions"] == _core.instruction_set()
    assert found["plan"] == Layout.vector(16, 4, 100, Layout.bytes(8)).kernels().splitlines()[0]
    layout, same, chosen, *_ = ended.stdout.split("\n\n")
    assert layout.splitlines()[-1].split() == ["32", "B", "64", "B", "16", "#" * 40]
    assert same == "Destination: the same"
    assert chosen.startswith("Chosen: ")


def test_every_line_of_the_plan_is_told() -> None:
    """Also what lies deeper, as it is indented."""
    members = "vector(100, 3, 5, int), vector(2, 1, 900, vector(100, 1, 3, double)), char"
    text = f"struct([1, 1, 1], [0, 70000, 400000], [{members}])"
    kernels = Layout.struct(
        [1, 1, 1],
        [0, 70000, 400000],
        [
            Layout.vector(100, 3, 5, Layout.bytes(4)),
            Layout.vector(2, 1, 900, Layout.vector(100, 1, 3, Layout.bytes(8))),
            Layout.bytes(1),
        ],
    ).kernels()
    lines = kernels.splitlines()
    assert len(lines) > 3
    printed = [line[16:] for line in explain(text).stdout.splitlines()]
    start = printed.index(lines[0])
    assert printed[start : start + len(lines)] == lines
    assert data(text)["layouts"][0]["kernels"] == lines


def test_bounds_and_true_bounds_differ_where_they_do() -> None:
    found = rows(explain("resized(hindexed_block(1, [16], double), -8, 2048)").stdout)
    assert found["extent"] == "2,048 B (2 KiB) from -8"
    assert found["true extent"] == "8 B from 16"


def test_run_lengths_are_counted_in_classes_of_powers_of_two() -> None:
    text = "blocks([0, 10, 20, 100, 200], [1, 2, 3, 4, 37])"
    assert Layout.blocks([0, 10, 20, 100, 200], [1, 2, 3, 4, 37]).length_classes() == [1, 2, 1, 0, 0, 1]
    bars = [line.split("  ")[-1].strip() for line in explain(text).stdout.splitlines() if line.endswith("#")]
    assert bars == ["#" * 20, "#" * 40, "#" * 20, "#" * 20]
    classes = data(text)["layouts"][0]["run_lengths"]["classes"]
    assert classes == [
        {"from": 1, "to": 1, "runs": 1},
        {"from": 2, "to": 3, "runs": 2},
        {"from": 4, "to": 7, "runs": 1},
        {"from": 8, "to": 15, "runs": 0},
        {"from": 16, "to": 31, "runs": 0},
        {"from": 32, "to": 63, "runs": 1},
    ]


def test_of_very_many_runs_the_first_are_looked_at() -> None:
    text = f"vector({2 * MOST_RUNS}, 1, 2, byte)"
    assert "of the first 1,000,000 runs:" in explain(text).stdout
    assert "of the first" not in explain(f"vector({MOST_RUNS}, 1, 2, byte)").stdout
    assert data(text)["layouts"][0]["run_lengths"] == {
        "of_first_runs": MOST_RUNS,
        "classes": [{"from": 1, "to": 1, "runs": MOST_RUNS}],
    }


def test_a_layout_of_nothing() -> None:
    found = rows(explain("contiguous(0, int)").stdout)
    assert (found["bytes"], found["runs"], found["form"], found["plan"]) == ("0 B", "0", "empty", "nothing to copy")
    assert "run lengths" not in found
    layout = data("contiguous(0, int)")["layouts"][0]
    assert (layout["mean_run_bytes"], layout["kernels"], layout["run_lengths"]["classes"]) == (None, [], [])


def test_a_source_and_a_destination() -> None:
    ended = explain(VECTOR, "bytes(512)")
    assert ended.exit_code == 0
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("Source: vector(")
    assert "Destination: bytes(count=512)" in lines
    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("  bytes ")] == ["512 B", "512 B"]
    assert [layout["runs"] for layout in data(VECTOR, "bytes(512)")["layouts"]] == [16, 1]


def test_sizes_that_differ_are_refused() -> None:
    ended = explain(VECTOR, "bytes(5120)")
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert "the source has 512 bytes, the destination 5,120" in ended.stderr


@pytest.mark.parametrize("texts", [["vector(16, 4, 1oo, double)"], ["bytes(8)", "vector(16, 4, 1oo, double)"]])
def test_what_cannot_be_read_is_pointed_at(texts: list[str]) -> None:
    ended = explain(*texts)
    assert ended.exit_code == 2
    assert ended.stdout == ""
    _, shown, caret = ended.stderr.rstrip().splitlines()[-3:]
    assert 'cannot read "1oo, double)"' in ended.stderr
    assert shown.strip() == "vector(16, 4, 1oo, double)"
    assert shown[caret.index("^") :].startswith("1oo")


def test_json_has_the_same() -> None:
    found = data("MILC_su3_zd:3:receive")
    assert found.keys() == {"lacuna_version", "instruction_set", "layouts", "transfer", "send", "mpi"}
    layout = _core.ddtbench("MILC_su3_zd", 3)[1]
    (shown,) = found["layouts"]
    assert shown.pop("parsed").startswith("MILC_su3_zd:3:receive (DDTBench, ")
    assert sum(c["runs"] for c in shown.pop("run_lengths")["classes"]) == layout.run_count
    assert shown == {
        "bytes": layout.size,
        "runs": layout.run_count,
        "mean_run_bytes": layout.size / layout.run_count,
        "lower_bound": layout.lower_bound,
        "extent": layout.extent,
        "true_lower_bound": layout.true_lower_bound,
        "true_extent": layout.true_extent,
        "form": layout.describe(),
        "kernels": layout.kernels().splitlines(),
    }


def test_json_goes_to_a_file_or_to_standard_output(tmp_path: Path) -> None:
    file = tmp_path / "new" / "x.json"
    ended = explain(VECTOR, "--json", str(file))
    assert "16 x +800 B" in ended.stdout
    assert json.loads(file.read_text()) == data(VECTOR)
    assert "16 x +800 B" in explain(VECTOR, "--json", "-").stderr
    assert explain(VECTOR, "--json", str(tmp_path)).exit_code == 2


def test_markup_of_the_terminal_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a[red]b:smile:.npy", np.zeros(3))
    assert explain('"a[red]b:smile:.npy"').stdout.startswith('"a[red]b:smile:.npy" (float64, 3)')


@pytest.mark.parametrize("family", _core.ddtbench_families())
@pytest.mark.parametrize("side", ["send", "receive"])
def test_every_ddtbench_layout_can_be_explained(family: str, side: str) -> None:
    ended = explain(f"{family}:0:{side}")
    assert ended.exit_code == 0
    assert "plan" in rows(ended.stdout)


def test_how_it_is_sent_to_a_rank_that_shares_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = data("vector(4096, 4, 100, double)")["send"]
    assert (sent["file"], sent["chosen"], sent["forced"]) == ("", "wide", None), "by usual times"
    assert list(sent["ways"]) == ["eager", "wide", "narrow", "passed", "direct", "rendezvous"]
    assert "eager_bytes" in sent["ways"]["eager"]["refused"]
    assert 0 < sent["ways"]["wide"]["us"] < sent["ways"]["rendezvous"]["us"]
    assert data(VECTOR)["send"]["chosen"] == "eager"
    shown = explain(VECTOR).stdout
    assert re.search(r"^chosen +eager +0\.\d+ +packed into the channel", shown, re.M), shown
    monkeypatch.setenv("LACUNA_WAY", "narrow")
    assert data(VECTOR)["send"]["chosen"] == "narrow"
    assert re.search(r"^forced +narrow ", explain(VECTOR).stdout, re.M)
    monkeypatch.setenv("LACUNA_WAY", "direct")
    sent = data("bytes(0)")["send"]
    assert (sent["chosen"], sent["forced"]) == ("eager", "direct")
    assert "direct is forced, but cannot be" in explain("bytes(0)").stdout
    monkeypatch.setenv("LACUNA_WAY", "pigeon")
    ended = explain(VECTOR)
    assert ended.exit_code == 2
    assert "rendezvous" in ended.stderr


def test_a_simulated_nic_shares_no_memory() -> None:
    assert data(VECTOR, "--nic", "model")["send"] == {}


def candidates(*arguments: str) -> list[dict[str, Any]]:
    found = data(*arguments)["transfer"]["candidates"]
    assert isinstance(found, list)
    return found


def possible(*arguments: str) -> list[dict[str, Any]]:
    return [c for c in candidates(*arguments) if "refused" not in c]


def test_the_stages_of_every_way_add_up_to_what_is_expected() -> None:
    transfer = data(VECTOR, "bytes(512)")["transfer"]
    assert transfer.keys() == {"objective", "profile_warnings", "chosen", "candidates"}
    found = [c for c in transfer["candidates"] if "refused" not in c]
    assert len(found) > 20
    for c in found:
        assert c["stages_us"].keys() == STAGES
        assert sum(c["stages_us"].values()) == pytest.approx(c["predicted_us"], rel=1e-6)
    assert transfer["chosen"] == found[0]
    assert [c["predicted_us"] for c in found] == sorted(c["predicted_us"] for c in found)


def test_what_cannot_be_says_why_and_comes_last() -> None:
    found = candidates(VECTOR)
    refused = [c for c in found if "refused" in c]
    assert refused
    assert found[-len(refused) :] == refused
    assert all(c["refused"] and "predicted_us" not in c for c in refused)
    assert "the other end is not told when it is over" in {c["refused"] for c in refused}
    assert "Not possible:\n  the other end is not told when it is over:" in explain(VECTOR).stdout


@pytest.mark.parametrize("objective", ["latency", "bandwidth", "cpu"])
def test_what_is_to_be_small_is_small(objective: str) -> None:
    transfer = data("NAS_MG_y:3", "--objective", objective)["transfer"]
    assert transfer["objective"] == objective
    assert f"least {objective}" in explain("NAS_MG_y:3", "--objective", objective).stdout
    found = [c for c in transfer["candidates"] if "refused" not in c]
    if objective == "cpu":
        cpu = [c["cpu_send_us"] + c["cpu_recv_us"] for c in found]
        assert cpu[0] == min(cpu)


def test_an_objective_that_is_none_is_refused() -> None:
    ended = explain(VECTOR, "--objective", "beauty")
    assert ended.exit_code == 2
    assert "latency" in ended.stderr


def test_a_simulated_nic_has_its_own_path() -> None:
    assert {c["path"] for c in candidates(VECTOR, "--nic", "model")} == {"wire"}
    assert {c["path"] for c in candidates(VECTOR)} == {"mapped", "slots", "kernel"}


def test_cold_data_takes_longer_in_every_way() -> None:
    warm, cold = (
        {(c["method"], c["path"], c["notify"]): c["predicted_us"] for c in possible("NAS_MG_y:3", *option)}
        for option in ((), ("--cold",))
    )
    assert warm.keys() == cold.keys()
    assert all(cold[way] >= us for way, us in warm.items())
    assert sum(cold.values()) > 1.2 * sum(warm.values())


def test_keys_that_are_bound_each_time_cost_more_than_bound_ones() -> None:
    def keyed(*arguments: str) -> float:
        (us,) = (
            c["stages_us"]["register"]
            for c in possible(VECTOR, *arguments)
            if (c["method"], c["path"], c["notify"]) == ("umr_send", "mapped", "none")
        )
        return float(us)

    assert keyed() == 0
    assert keyed("--uses", "1") == pytest.approx(10 * keyed("--uses", "10"))
    assert keyed("--uses", "1") > 0


def test_a_method_and_a_path_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACUNA_METHOD", "sgrs")
    assert {c["method"] for c in possible(VECTOR)} == {"sgrs"}
    monkeypatch.setenv("LACUNA_PATH", "kernel")
    (only,) = possible(VECTOR)
    assert (only["method"], only["path"]) == ("sgrs", "kernel")
    text = explain(VECTOR).stdout
    assert "Chosen: sgrs on path kernel" in text
    assert "LACUNA_METHOD=sgrs LACUNA_PATH=kernel rules it out" in text


def test_a_force_that_is_not_possible_exits_with_2_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACUNA_PATH", "wire")
    ended = explain(VECTOR)
    assert ended.exit_code == 2
    assert "LACUNA_PATH=wire is not possible here: there is no path wire here" in " ".join(ended.stderr.split())


@pytest.mark.parametrize(
    ("name", "lists"),
    [("LACUNA_METHOD", ("pack_pipelined", "sgrs", "umr_chunked")), ("LACUNA_PATH", ("slots", "wire"))],
)
def test_an_unknown_force_lists_the_names(monkeypatch: pytest.MonkeyPatch, name: str, lists: tuple[str, ...]) -> None:
    monkeypatch.setenv(name, "pigeon")
    ended = explain(VECTOR)
    assert ended.exit_code == 2
    assert f"{name}: no" in ended.stderr
    assert '"pigeon"; there are: ' in ended.stderr
    assert all(each in ended.stderr for each in lists)


def test_what_ddtbench_sends_goes_where_ddtbench_receives_it() -> None:
    send, receive, _ = _core.ddtbench("FFT2", 0)
    assert send != receive
    omitted, named = data("FFT2:0"), data("FFT2:0", "FFT2:0:receive")
    assert omitted == named
    assert omitted["layouts"][1]["form"] == receive.describe()
    assert explain("FFT2:0").stdout == explain("FFT2:0:send", "FFT2:0:receive").stdout


def test_the_text_is_the_librarys() -> None:
    layout = Layout.vector(16, 4, 100, Layout.bytes(8))
    text, found = _core.Guide().explain(layout, Layout.bytes(512))
    assert text.rstrip() in explain(VECTOR, "bytes(512)").stdout
    assert candidates(VECTOR, "bytes(512)") == found


def test_a_machine_without_a_profile_is_told_to_make_one() -> None:
    (warning,) = data(VECTOR)["transfer"]["profile_warnings"]
    assert "nothing was measured here" in warning
    assert "`lacuna guide`" in warning
    assert f"warning: {warning}" in explain(VECTOR).stdout


def test_what_was_measured_stands_beside_what_was_expected() -> None:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))
    ended = explain("NAS_LU_y:0", "--nic", "model", "--measure", "--json", "-")
    assert ended.exit_code == 0, ended.stderr
    found = [c for c in json.loads(ended.stdout)["transfer"]["candidates"] if "refused" not in c]
    assert not {c["method"] for c in found} & set(BY_HAND)
    assert all(0.3 < c["measured_us"] / c["predicted_us"] < 3 for c in found)
    assert f"{found[0]['predicted_us']:.2f} us expected, {found[0]['measured_us']:.2f} us measured" in ended.stderr
    assert "  expected  measured  " in ended.stderr


def test_help_lists_the_forms() -> None:
    text = explain("--help").stdout
    for name, (_, signature) in CONSTRUCTORS.items():
        assert "".join(f"{name}({signature})".split()) in "".join(text.split())
    for name in ("NAS_LU_y:3", "FFT2:1:receive", "double", "matrix.npy[::2, 3:5]", "range("):
        assert name in text


def test_ways_of_messages_are_measured() -> None:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))
    ended = explain("subarray([64, 64], [8, 8], [3, 4], float)", "--measure", "--json", "-")
    assert ended.exit_code == 0, ended.stderr
    sent = json.loads(ended.stdout)["send"]["ways"]
    assert {way for way, of in sent.items() if "measured_us" in of} == {
        way for way, of in sent.items() if "refused" not in of
    }
    assert "measured  what happens" in ended.stderr


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (("vector(8, 1, 0, double)", "bytes(64)"), "it names bytes twice"),
        (("vector(2, 1, 4194304, double)",), "it spans"),
    ],
    ids=["overlapping", "long"],
)
def test_ways_of_messages_that_cannot_be_measured(what: tuple[str, ...], why: str) -> None:
    try:
        find_worker()
    except WorkerError as e:
        pytest.skip(str(e))
    said = explain(*what, "--measure").stdout  # methods cannot be verified where bytes are named twice
    assert f"not measured: {why}" in " ".join(said.split())
