"""How quiet the machine was: which looks were disturbed, and what a reader has to be told.

The worker sends a fixed message between its two processes before and after each cell and reads what the kernel counts. The
message takes the same time whenever the machine is in the same state, so a probe off the run's usual one means that
something else was going on, or that the hypervisor has moved a processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from lacuna.record import Look

_OFF = 1.15
"""A probe this many times as long as usual, or as short. On a quiet machine probes are within 5 %."""

_STOLEN = 0.10
"""Of the time of both processes, what the hypervisor gave to others. Medians bear less."""

_PREEMPTED_EACH_MS = 1.0
"""Timer ticks and kernel threads take a core now and then; more often than this it is another program."""

_LOUD = 0.05
"""So large a part of disturbed cells is worth a warning."""

_CORES = 2


@dataclass(frozen=True)
class Quiet:
    """A run's verdict on itself."""

    usual_us: float
    """The median of all probes."""
    disturbed: dict[int, str]
    """By index of the look, what disturbed it."""
    warnings: tuple[str, ...]


def probe_text(usual_us: float) -> str:
    return f"{usual_us:.2f} µs"


def disturbance(look: Look, usual_us: float) -> str:
    """What disturbed a look, in words; nothing if it was quiet."""
    c = look.conditions
    total_ms = max(1.0, c.setup_ms + c.measuring_ms)
    off = [p for p in c.probe_us if not usual_us / _OFF <= p <= usual_us * _OFF]
    if off:
        return f"the probe took {off[0] / usual_us:.1f} times as long as usual"
    if c.stolen_ms > _STOLEN * total_ms * _CORES:
        return f"the hypervisor took {c.stolen_ms:.0f} of {total_ms * _CORES:.0f} ms"
    if c.preempted > _PREEMPTED_EACH_MS * total_ms:
        return f"{c.preempted} times another process had the core"
    return ""


def judge(looks: Sequence[Look]) -> Quiet:
    probes = [p for look in looks for p in look.conditions.probe_us]
    if not probes:
        return Quiet(0.0, {}, ())
    usual = median(probes)
    disturbed = {i: why for i, look in enumerate(looks) if (why := disturbance(look, usual))}
    warnings = []
    high, low = max(probes), min(probes)
    elsewhere = [p for p in probes if not usual / _OFF <= p <= usual * _OFF]
    if len(elsewhere) > _LOUD * len(probes):
        warnings.append(
            f"The machine changed its state during the run: a fixed message between the two processes took {low:.1f} to "
            f"{high:.1f} µs, usually {usual:.1f}. Cells measured in different states do not compare with each other; "
            "what is said within one cell holds."
        )
    elif len(disturbed) > _LOUD * len(looks):
        first = next(iter(disturbed.values()))
        warnings.append(
            f"The machine was not quiet: {len(disturbed)} of {len(looks)} looks at cells were disturbed (the first: {first}). "
            "Stop other programs, or measure again when the neighbours sleep."
        )
    return Quiet(usual, disturbed, tuple(warnings))
