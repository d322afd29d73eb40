"""The file by which preloaded MPI programs choose their ways: the times that `lacuna guide --mpi` measured."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from lacuna._core import check_mpi_profile, machine_name, mpi_profile_file
from lacuna.files import write_whole
from lacuna.mpi.distance import Distance
from lacuna.mpi.ways import BYTES, CHUNKED, CHUNKED_RUN, CHUNKS, CONTIGUOUS, PACKED, RUNS, Lists, Measured, Sheets
from lacuna.worker.result import Result, begun

SCHEMA = "lacuna-mpi-ways/4"
GAIN = 0.95
"""MpiPrices::kGain of lacuna/guide/mpi_ways.hpp: a way is left only for one that takes less of its time."""


@dataclass
class MpiProfile(Result):
    """The members of the file."""

    machine: str
    library: str
    library_version: str
    distance: Distance
    line_ns: float
    """What was found of the two CPUs; 0: no line was timed."""
    ns: Sheets
    thresholds: dict[str, Any] = field(default_factory=dict)
    """`contiguous`, and `inter_node` where two hosts were measured."""

    def document(self) -> dict[str, object]:
        return {"schema": SCHEMA, "bytes": BYTES, "runs": RUNS, **vars(self)}

    def store(self) -> Path:
        """Writes it to where the library looks for it. Returns the file."""
        file = Path(mpi_profile_file(self.library, self.distance))
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, _text(self.document()))
        return file


def of(measured: Measured, command: str, inter_node: Mapping[str, Any] | None = None) -> MpiProfile:
    """Of this machine, now. `inter_node`: of between_nodes(), or what an older profile had."""
    thresholds: dict[str, Any] = {"contiguous": _contiguous(measured.contiguous)}
    if inter_node:
        thresholds["inter_node"] = dict(inter_node)
    return begun(
        MpiProfile,
        command,
        machine_name(),
        measured.library,
        measured.library_version,
        measured.line_times.distance,
        measured.line_times.line_ns,
        measured.ns,
        thresholds,
    )


def between_nodes(times: Lists) -> dict[str, Any]:
    """The member `inter_node`: from how many bytes on a message goes in chunks, and of how many each."""
    ways = [f"chunked {chunk}" for chunk in CHUNKS]
    starts = {way: _from(CHUNKED, times[PACKED], times[way]) for way in ways}
    paying = [way for way in ways if starts[way] is not None] or ways[:1]
    best = min(paying, key=lambda way: geometric_mean(times[way]))
    return {
        "bytes": list(CHUNKED),
        "run": CHUNKED_RUN,
        "ns": times,
        "from": starts[best],
        "chunk": CHUNKS[ways.index(best)],
    }


def kept_between_nodes(measured: Measured) -> dict[str, Any] | None:
    """What the profiles that hold say of two hosts, of whichever distance; the newer one first."""
    own = measured.line_times.distance
    found = [old for distance in (own, own.other) if (old := _holding(measured, distance))]
    for old in sorted(found, key=lambda one: one["created"], reverse=True):
        between = old["thresholds"].get("inter_node")
        if between:
            return dict(between)
    return None


def holds(measured: Measured, distance: Distance) -> bool:
    """Whether there is a profile of that distance, of this machine and this version of the MPI."""
    return _holding(measured, distance) is not None


def share_between_nodes(measured: Measured, between: Mapping[str, Any]) -> None:
    """Into the profile of the other distance, if it holds: which CPUs of a node were measured says nothing of two
    hosts."""
    other = measured.line_times.distance.other
    if holds(measured, other):
        file = Path(mpi_profile_file(measured.library, other))
        old = json.loads(file.read_text())
        write_whole(file, _text({**old, "thresholds": {**old.get("thresholds", {}), "inter_node": dict(between)}}))


def _text(document: Mapping[str, object]) -> str:
    """Of the file: a list of numbers is a line."""
    lists = re.compile(r"\[[-+.\deE,\s]+\]")
    return lists.sub(lambda found: " ".join(found[0].split()), json.dumps(document, indent=1)) + "\n"


def _holding(measured: Measured, distance: Distance) -> dict[str, Any] | None:
    file = Path(mpi_profile_file(measured.library, distance))
    try:
        check_mpi_profile(str(file), measured.library)
        old = json.loads(file.read_text())
        same = (old["machine"], old["library_version"]) == (machine_name(), measured.library_version)
        return {"created": str(old["created"]), "thresholds": dict(old.get("thresholds", {}))} if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _contiguous(times: Lists) -> dict[str, Any]:
    start = _from(CONTIGUOUS, times["host"], times["offered"])
    return {"bytes": list(CONTIGUOUS), "ns": times, "from": start}


def _from(sizes: Sequence[int], old: Sequence[float], new: Sequence[float]) -> int | None:
    """The first size from which on the new way takes clearly less; nothing: there is none."""
    first = None
    for size, before, after in zip(sizes, old, new, strict=True):
        if after >= GAIN * before:
            first = None
        elif first is None:
            first = size
    return first
