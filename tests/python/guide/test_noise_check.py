"""Which state a machine was in, and what disturbed it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import FAR, QUIET, grid_subject, look

from lacuna.guide.noise_check import alike, check_noise, disturbance, moved, states, usual_state
from lacuna.guide.run_record import Look
from lacuna.worker.records import Probe

pytestmark = pytest.mark.check


def looks(*probes: Probe) -> list[Look]:
    return [look(grid_subject(16, 1 << i), probe) for i, probe in enumerate(probes)]


def test_the_usual_state_is_the_one_of_most_probes() -> None:
    assert usual_state(looks(FAR, QUIET, QUIET, FAR, QUIET)) == QUIET
    assert usual_state(looks(FAR, FAR, QUIET)) == FAR


def test_a_quiet_run_has_no_warning() -> None:
    verdict = check_noise(looks(*[Probe(2.8 + 0.01 * i, 7.0, 7.0) for i in range(10)]))
    assert verdict is not None
    assert not verdict.disturbed
    assert not verdict.warnings


def test_another_state_is_named() -> None:
    verdict = check_noise(looks(*[QUIET] * 8, FAR, Probe(2.8, 9.8, 7.0)))
    assert verdict is not None
    assert verdict.disturbed == {
        8: "a message between the processes took 3.3 times as long as usual",
        9: "arithmetic of the sender took 1.4 times as long as usual",
    }
    assert "The machine changed its state" in verdict.warnings[0]


def test_what_the_kernel_counts_disturbs_too() -> None:
    quiet = look(grid_subject())
    assert disturbance(quiet, QUIET) == ""
    stolen = replace(quiet, conditions=replace(quiet.conditions, stolen_ms=20.0))
    assert disturbance(stolen, QUIET) == "the hypervisor took 20 of 100 ms"
    preempted = replace(quiet, conditions=replace(quiet.conditions, preempted=60))
    assert disturbance(preempted, QUIET) == "60 times another process had the core"


def test_a_change_in_the_middle_disturbs() -> None:
    changed = look(grid_subject())
    changed = replace(changed, conditions=replace(changed.conditions, probes=(QUIET, FAR, QUIET)))
    assert disturbance(changed, QUIET)


def test_states_are_those_of_the_looks_that_count() -> None:
    s = grid_subject()
    found = states([look(s, FAR, counts=False), look(s, QUIET, number=2)])
    assert found == {s: [QUIET, QUIET]}
    assert not alike(QUIET, FAR)


def test_nothing_to_judge_is_no_trouble() -> None:
    assert check_noise([]) is None
    assert states([]) == {}


@pytest.mark.parametrize(
    ("messages_us", "is_so"),
    [
        ([2.7], False),
        ([2.7, 2.9], False),
        ([2.7, 2.7, 2.7, 9.0], False),  # a jolt
        ([2.7, 2.7, 9.0, 9.0], True),
        ([1.4, 2.7], True),  # their mean is near to both
        ([1.4, 1.4, 2.7, 2.7], True),
        ([9.0, 2.7, 2.7, 2.7, 2.7], True),  # the first is what a choice is made by
        ([2.7, 2.7, 2.7, 9.0, 9.0], True),
    ],
)
def test_peers_that_came_nearer_or_went_apart_have_moved(messages_us: list[float], is_so: bool) -> None:
    assert moved([Probe(us, 7, 7) for us in messages_us]) == is_so
