"""How quiet the machine was: which looks were disturbed, and what a reader has to be told.

Before, during and after each cell the worker does fixed pieces of work: a message between its two processes, and
arithmetic on either core. They take the same time whenever the machine is in the same state; and machines have
states. A virtual one is moved from core to core, and two processors that share a cache become two that do not; a
neighbour keeps the other half of a core busy. Whichever state most cells were measured in is called the usual one.
All else is disturbed, as is a cell from which the kernel says that the cores were taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from statistics import median, median_low

from lacuna._core import same_class
from lacuna.guide.run_record import Look
from lacuna.worker.grouping import grouped
from lacuna.worker.records import Conditions, Probe, Subject

_OFF = 1.15
"""A piece of work that takes this many times as long as usual, or as short. In one state they are within 5 %."""

_STOLEN = 0.10
"""Of the time of both processes, what the hypervisor gave to others. Medians bear less."""

_PREEMPTED_EACH_MS = 1.0
"""Timer ticks and kernel threads take a core now and then; more often than this it is another program."""

_LOUD = 0.05
"""So large a part of disturbed cells is worth a warning."""

_CORES = 2

_PROBES = 150
"""So many of a run's thousands tell which state is the usual one: it is asked while the run goes on."""

_MOVED = 0.25
"""So large a part of the probes is of another class of peers than the others: the hypervisor, or the scheduler, put
them nearer to one another meanwhile, or further apart."""


@dataclass(frozen=True)
class NoiseVerdict:
    """A run's verdict on itself."""

    usual: Probe
    disturbed: dict[int, str]
    """By index of the look, what disturbed it."""
    warnings: tuple[str, ...]


def _parts(probe: Probe) -> tuple[float, float, float]:
    return probe.message_us, probe.sender_us, probe.receiver_us


def alike(one: Probe, two: Probe) -> bool:
    """Whether two probes tell of one state."""
    return all(a / _OFF <= b <= a * _OFF for a, b in zip(_parts(one), _parts(two), strict=True))


def message_time(probes: Sequence[Probe]) -> float:
    """What a message usually took; never a mean of two states."""
    return median_low(p.message_us for p in probes)


def moved(probes: Sequence[Probe]) -> bool:
    """Whether the peers came nearer to one another, or went apart, between these probes, of which the first is what a
    choice is made by."""
    usual = message_time(probes)
    others = [not same_class(p.message_us, usual) for p in probes]
    return others[0] or sum(others) > _MOVED * len(probes)


def _far(one: Probe, two: Probe) -> float:
    return max(abs(log(a / b)) for a, b in zip(_parts(one), _parts(two), strict=True))


def usual_state(looks: Sequence[Look]) -> Probe:
    """The state that most probes tell of: the medians of the largest group of probes around one of them."""
    probes = [p for look in looks for p in look.conditions.probes]
    some = probes[:: max(1, len(probes) // _PROBES)]
    groups = ([q for q in some if alike(p, q)] for p in some[::3])
    largest = max(groups, key=len)
    message, sender, receiver = (median(parts) for parts in zip(*map(_parts, largest), strict=True))
    return Probe(message, sender, receiver)


def _odd_probe(c: Conditions, usual: Probe) -> str:
    odd = max(c.probes, key=lambda p: _far(p, usual))
    if alike(odd, usual):
        return ""
    names = ("a message between the processes", "arithmetic of the sender", "arithmetic of the receiver")
    named = zip(names, _parts(odd), _parts(usual), strict=True)
    name, is_us, was_us = max(named, key=lambda part: abs(log(part[1] / part[2])))
    return f"{name} took {is_us / was_us:.1f} times as long as usual"


def disturbance(look: Look, usual: Probe) -> str:
    """What disturbed a look, in words; nothing if it was quiet."""
    c = look.conditions
    total_ms = max(1.0, c.setup_ms + c.measuring_ms)
    if odd := _odd_probe(c, usual):
        return odd
    if c.stolen_ms > _STOLEN * total_ms * _CORES:
        return f"the hypervisor took {c.stolen_ms:.0f} of {total_ms * _CORES:.0f} ms"
    if c.preempted > _PREEMPTED_EACH_MS * total_ms:
        return f"{c.preempted} times another process had the core"
    return ""


def states(looks: Sequence[Look]) -> dict[Subject, list[Probe]]:
    """The probes of each cell, of the looks that count."""
    counted = grouped((look for look in looks if look.counts), lambda look: look.subject)
    return {subject: [p for look in own for p in look.conditions.probes] for subject, own in counted.items()}


def check_noise(looks: Sequence[Look]) -> NoiseVerdict | None:
    """The verdict; None where there is nothing to judge."""
    if not looks:
        return None
    usual = usual_state(looks)
    disturbed = {i: why for i, look in enumerate(looks) if (why := disturbance(look, usual))}
    if len(disturbed) <= _LOUD * len(looks):
        return NoiseVerdict(usual, disturbed, ())
    probes = [p for look in looks for p in look.conditions.probes]
    message = sorted(p.message_us for p in probes)
    others = sum(not alike(p, usual) for p in probes)
    if others > _LOUD * len(probes):
        warning = (
            f"The machine changed its state: in {others / len(probes):.0%} of the probes it was another one than "
            f"usual (a fixed message between the two processes took {message[0]:.1f} to {message[-1]:.1f} µs, usually "
            f"{usual.message_us:.1f}). Methods of one cell compare; cells measured in different states do not."
        )
    else:
        warning = (
            f"The machine was not quiet: {len(disturbed)} of {len(looks)} looks at cells were disturbed "
            f"(the first: {next(iter(disturbed.values()))}). Stop other programs, or measure again at another time."
        )
    return NoiseVerdict(usual, disturbed, (warning,))
