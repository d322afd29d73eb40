"""`lacuna bench interactions`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import PATIENCE, wait_for
from lacuna._core import simulate_exchange
from typer.testing import CliRunner

from lacuna import Guide, Layout
from lacuna.bench import app
from lacuna.interactions import command, simulated
from lacuna.interactions.conditions import CONDITIONS, FORCED, PLAIN, QUICK_SUBJECTS, SUBJECTS, Subject, condition
from lacuna.interactions.race import Effort, Race
from lacuna.interactions.rank import Rank, stream
from lacuna.interactions.ranks import Busy, Ranks
from lacuna.interactions.rows import Interactions, effects_of, rows_from
from lacuna.lines import RowError, WrongBytesError
from lacuna.paper import profiles
from lacuna.worker import WorkerError

SMALL = Subject(256, 64, coarser=4)


def test_conditions_differ_in_one_thing_from_one_that_comes_before() -> None:
    seen = {PLAIN}
    for c in CONDITIONS[1:]:
        assert c.than in seen
        assert c.handled
        seen.add(c.name)
    assert len({s.name for s in SUBJECTS}) == len(SUBJECTS)
    assert set(QUICK_SUBJECTS) <= set(SUBJECTS)


def test_what_cannot_be_had_is_skipped() -> None:
    possible, skipped = command.conditions_here([0, 1])
    assert skipped["two_peers"] == "needs 3 CPUs, and this process may use 2"
    assert {c.name for c in possible} | set(skipped) == {c.name for c in CONDITIONS}
    assert "two_peers" not in command.conditions_here([0, 1, 2])[1]


def test_loss_is_judged_by_the_rounds_that_did_not_choose() -> None:
    samples = {
        (PLAIN, "pack"): [10.0, 10.0] * 3,
        (PLAIN, "sgrs"): [20.0, 20.0] * 3,
        (PLAIN, "gather_write"): [30.0, 30.0] * 3,
        (PLAIN, "automatic"): [15.0, 15.0] * 3,
        # Each of two is the fastest in one half of the rounds, and so chosen by it, and slow in the other.
        ("cold", "pack"): [20.0, 20.0] * 3,
        ("cold", "sgrs"): [10.0, 40.0] * 3,
        ("cold", "gather_write"): [40.0, 10.0] * 3,
        ("cold", "automatic"): [30.0, 30.0] * 3,
    }
    rows = rows_from("local", "a case", 64, samples)
    (sgrs,) = (r for r in rows if r.condition == "cold" and r.way == "sgrs")
    assert sgrs.half_us == pytest.approx((10.0, 40.0))
    (effect,) = effects_of(rows)
    assert effect.slower == pytest.approx(40 / 10)
    assert effect.loss == pytest.approx(20 / 40)
    assert effect.automatic == pytest.approx(30 / 40)
    assert effect.automatic_without == pytest.approx(1.5)
    result = Interactions("", "", "", effects=[effect], rows=rows)
    summary = json.loads(result.to_json())["summary"]["local"]["cold"]
    assert summary["matters"] is False
    result.without("none here", ["cold"])
    assert result.effects == []
    assert result.skipped == {"cold": "none here"}


def test_what_slows_a_round_slows_all_its_ways() -> None:
    slow = [1.0, 1.0, 3.0, 1.0, 3.0, 3.0]
    samples = {(PLAIN, way): [us * by for by in slow] for way, us in (("pack", 10.0), ("sgrs", 20.0))}
    for row in rows_from("local", "a case", 64, samples):
        assert row.half_us[0] == pytest.approx(row.half_us[1])


def _rank(subject: Subject) -> Rank:
    """Connected to nobody."""
    rank = object.__new__(Rank)
    rank.rank, rank.peers, rank.trip, rank.ways, rank.sends, rank.receives = 0, [1], 0, [None], {}, {}  # type: ignore[list-item]
    rank.open(subject, [[True, False]])
    return rank


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize(
    ("spoil", "wrong"),
    [
        (None, ""),
        ((0, 0), "received other bytes"),
        ((0, -1), "written that is in no block"),
        ((3, 1024), "written that is in no block"),
    ],
)
def test_every_byte_is_looked_at(cold: bool, spoil: tuple[int, int] | None, wrong: str) -> None:
    rank = _rank(SMALL)
    rank.trip = 5

    def arrive(*_: object) -> None:
        side = rank.receives[False][0]
        offset = side.offset(rank.trip, cold)
        side.blocks(offset)[:] = stream(9, 1, SMALL.payload).reshape(side.count, side.block)
        if spoil:
            side.bytes[offset : offset + side.slot].reshape(side.count, -1)[spoil] ^= 1

    found = rank._verify(None, arrive, cold, False, 9)  # type: ignore[arg-type]
    assert wrong in found
    assert bool(found) == bool(wrong)


def test_messages_of_the_model() -> None:
    assert simulated.messages(condition(PLAIN)) == [(0, 1)]
    assert sorted(simulated.messages(condition("two_peers"))) == [(0, 1), (0, 2), (1, 0), (2, 0)]
    names = [c.name for c in simulated.conditions()]
    assert names == [PLAIN, "both_ways", "two_peers"]
    times, refused = simulated.times(profiles.load("connectx5-rocev2").path, SMALL, simulated.conditions())
    assert refused == []
    assert set(times) == {(name, way) for name in names for _, way in times}
    assert times["both_ways", "sgrs"] < times["two_peers", "sgrs"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
class TestOnThisMachine:
    @pytest.mark.gate
    def test_a_case_under_all_conditions(self) -> None:
        here = [condition(name) for name in (PLAIN, "both_ways", "cold")]
        with Ranks(sorted(os.sched_getaffinity(0))[:2], PATIENCE) as ranks:
            race = Race({(2, False): ranks}, {}, here)
            samples = race.run(SMALL, Effort(2, 0.0))
            assert {name for name, _ in samples} == {c.name for c in here}
            assert {len(times) for times in samples.values()} == {2}, "a time of each round, however many turns it has"
            assert race.huge, "nothing was asked for"

    @pytest.mark.usefixtures("still_clock")
    @pytest.mark.all
    def test_the_command(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of one case, under a condition of each kind: beside others on a busy machine all of them take minutes."""
        few = [c for c in CONDITIONS if c.name in (PLAIN, "both_ways", "cold") or c.busy == "computes"]
        monkeypatch.setattr(command, "CONDITIONS", few)
        monkeypatch.setattr(command, "QUICK_SUBJECTS", (SMALL,))
        out = tmp_path / "out"
        run = CliRunner().invoke(app, ["interactions", "--quick", "--budget", "5", "-o", str(out)])
        assert run.exit_code == 0, run.output
        found = json.loads((out / "interactions.json").read_text())
        assert found["schema"] == 1
        assert {"model:connectx5-rocev2", "local"} <= found["summary"].keys()
        assert found["summary"]["local"]["both_ways"]["cases"] >= 1
        assert "both_ways" in (out / "interactions.html").read_text()
        assert (out / "interactions.png").stat().st_size > 10_000

    def test_wrong_bytes_end_a_case(self) -> None:
        class Wrong:
            def ask(self, *_: object) -> list[dict[str, object]]:
                wrong = "rank 0 received other bytes than rank 1 sent"
                return [{"us": 1.0, "wrong": wrong, "huge_bytes": 0, "huge_wanted": 0}] * 2

        race = Race({(2, False): Wrong()}, {}, [condition(PLAIN)])  # type: ignore[dict-item]
        with pytest.raises(WrongBytesError, match="automatic, plain: rank 0 received other bytes"):
            race.run(SMALL, Effort(1, 0.0))

    def test_a_way_that_cannot_is_left_out_and_told(self) -> None:
        class Refusing:
            def ask(self, member: str, command: dict[str, dict[str, object]]) -> list[dict[str, object]]:
                if member == "took" and command["turn"]["way"] == 3:
                    raise RowError("too many keys")
                return [{"us": 1.0, "wrong": "", "huge_bytes": 0, "huge_wanted": 1}] * 2

        race = Race({(2, False): Refusing()}, {}, [condition(PLAIN), condition("both_ways")])  # type: ignore[dict-item]
        samples = race.run(SMALL, Effort(1, 0.0))
        assert (PLAIN, "pack_write") not in samples
        assert len(samples) == 2 * (len(FORCED))
        assert race.refused[0] == f"{SMALL.name}: pack_write, plain: too many keys"
        assert not race.huge

    def test_whoever_is_busy_stops_and_is_missed(self) -> None:
        with Busy("computes", max(os.sched_getaffinity(0))) as busy:
            pid = busy._process.pid

            def stat() -> list[str]:
                """From the state on."""
                return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()

            def cpu_ticks() -> int:
                return int(stat()[11]) + int(stat()[12])

            wait_for("it is stopped from the start", lambda: stat()[0] == "T")
            stopped = cpu_ticks()
            busy.go()
            wait_for("it takes the CPU", lambda: cpu_ticks() > stopped + 1)
            busy.stop()
            wait_for("it stops again", lambda: stat()[0] == "T")
            busy._process.kill()
            busy._process.wait()
            with pytest.raises(WorkerError, match="died"):
                busy.go()

    def test_a_rank_that_dies_is_told(self) -> None:
        with Ranks(sorted(os.sched_getaffinity(0))[:2], PATIENCE) as ranks:
            ranks._processes[1].kill()
            ranks._processes[1].wait()
            with pytest.raises(WorkerError, match="died"):
                ranks.ask("took", {"turn": {}})


def test_every_method_is_forced() -> None:
    layout = Layout.bytes(1 << 20)
    _, candidates = Guide("model").explain(layout, layout)
    assert {way.method for way in FORCED if way.method} == {c["method"] for c in candidates}


def test_wrong_bytes_on_the_model_are_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise ValueError("transfer: rank 1 has other bytes than rank 0 sent")

    def refused(*_: object) -> None:
        raise ValueError("unsupported: too many keys")

    monkeypatch.setattr(simulated, "simulate_exchange", refused)
    assert len(simulated.times(Path("p"), SMALL, [condition(PLAIN)])[1]) == 1 + len([w for w in FORCED if w.method])
    monkeypatch.setattr(simulated, "simulate_exchange", wrong)
    with pytest.raises(WrongBytesError, match="other bytes than rank 0 sent"):
        simulated.times(Path("p"), SMALL, [condition(PLAIN)])


def test_messages_that_are_none() -> None:
    layout = Layout.bytes(64)
    platform = str(profiles.load("connectx5-rocev2").path)
    for messages, before, said in (
        ([(0, 2)], 1, "ranks are 0 to 1"),
        ([(0, 1), (0, 1)], 1, "the same message twice"),
        ([(0, 1)], -1, "a number of exchanges"),
    ):
        with pytest.raises(ValueError, match=said):
            simulate_exchange(platform, 2, messages, layout, "", "at_once", 8, True, before)


def test_other_nics_are_refused() -> None:
    run = CliRunner().invoke(app, ["interactions", "--nic", "verbs:mlx5_0"])
    assert run.exit_code == 2
    assert "this measures local, model and model:PLATFORM" in run.output
