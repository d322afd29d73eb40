"""Lacuna's Python functions against NumPy's, and torch's where it is installed, on the layouts that are drawn: in this
process, in turn, each verified against NumPy before and after."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lacuna
from lacuna.bench.copies.drawn import Blocks, DrawnCase, DrawnSide, Memory, Nest, dtype_of
from lacuna.bench.copies.rows import Against
from lacuna.medians import median_of
from lacuna.worker.json_lines import RowError

_PAGE = 4096
_SAMPLE_NS = 50_000
"""A sample lasts that long at least: a call from Python takes half a microsecond."""
_LONG_NS = 1_000_000
"""From here on a first run, which may be cold, says well enough how often to run."""
_FEWEST, _PATIENCE, _MOST = 9, 5, 101
"""Rounds; samples of a contender that alone has taken all the time."""

Call = Callable[[], object]


class Memories:
    """Memory that is kept from case to case, since making it takes longer than a row."""

    def __init__(self) -> None:
        self._kept: dict[str, Memory] = {}

    def take(self, name: str, size: int) -> Memory:
        """Bytes at a page's start, with something in them."""
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            whole = np.empty(size + _PAGE, np.uint8)
            start = -whole.ctypes.data % _PAGE
            kept = whole[start : start + size]
            kept[:] = np.frombuffer(np.random.default_rng(len(self._kept)).bytes(size), np.uint8)
            self._kept[name] = kept
        return kept[:size]


class ArraysRace:
    """One for a run of the bench."""

    def __init__(self, torch: Any = None) -> None:
        """`torch`: another module than the one that is installed."""
        self._memories = Memories()
        self.versions = {"NumPy": np.__version__}
        self._torch = torch or (importlib.import_module("torch") if importlib.util.find_spec("torch") else None)
        if self._torch:
            self._torch.set_num_threads(1)
            self.versions["torch"] = str(self._torch.__version__)

    def measure(self, case: DrawnCase, operation: str, milliseconds: float) -> dict[str, Against]:
        """Lacuna against each, by its name in a row: "numpy", "torch". Nothing where arrays have no such call. Raises
        RowError where one of them moved other bytes than NumPy."""
        source, target = case.sides(operation)
        if operation == "transpack" and any(isinstance(part, Blocks) for part in case.scattered.parts):
            return {}
        read = self._memories.take("source", source.span)
        write = self._memories.take("target", target.span)
        calls = {"lacuna": _lacuna(case, operation, read, write), "numpy": _numpy(source, read, target, write)}
        if self._torch and (call := _torch(self._torch, source, read, target, write)):
            calls["torch"] = call
        before = write.copy()
        calls["numpy"]()
        expected = write.copy()

        def verify() -> None:
            for name, call in calls.items():
                write[:] = before
                call()
                if not np.array_equal(write, expected):
                    raise RowError(f"{case.name}, {operation}: {name} moved other bytes than numpy, from Python")

        verify()
        samples = race(calls, milliseconds)
        verify()
        ours = samples.pop("lacuna")
        return {name: _against(name, ours, theirs) for name, theirs in samples.items()}


# --- the contenders ---------------------------------------------------------------------------------------------------


def _lacuna(case: DrawnCase, operation: str, read: Memory, write: Memory) -> Call:
    source, target = case.sides(operation)
    if operation == "pack":
        layout = source.layout()
        return lambda: layout.pack(read, source.base, out=write)
    if operation == "unpack":
        layout = target.layout()
        return lambda: layout.unpack(read, write, target.base)
    return _each(lacuna.copy, source, read, target, write)


def _numpy(source: DrawnSide, read: Memory, target: DrawnSide, write: Memory) -> Call:
    (part, *_), (other, *_) = source.parts, target.parts
    if isinstance(part, Blocks):
        return _listed(part, read, write, packs=True)
    if isinstance(other, Blocks):
        return _listed(other, write, read, packs=False)
    return _each(np.copyto, source, read, target, write)


def _each(
    copy: Callable[[Any, Any], object], source: DrawnSide, read: Memory, target: DrawnSide, write: Memory
) -> Call:
    pairs = _pairs(source, read, target, write)
    if len(pairs) == 1:
        to, of = pairs[0]
        return lambda: copy(to, of)

    def every() -> None:
        for to, of in pairs:
            copy(to, of)

    return every


def _pairs(
    source: DrawnSide, read: Memory, target: DrawnSide, write: Memory
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Views of loops, and where each goes: the target's first."""
    if target.is_dense:
        return list(zip(_pieces(source, write), _views(source, read), strict=True))
    if source.is_dense:
        return list(zip(_views(target, write), _pieces(target, read), strict=True))
    return list(zip(_views(target, write), _views(source, read), strict=True))


def _views(side: DrawnSide, memory: Memory) -> list[NDArray[Any]]:
    return [part.view(memory, side.base) for part in side.parts if isinstance(part, Nest)]


def _pieces(side: DrawnSide, dense: Memory) -> list[NDArray[Any]]:
    """Of memory without gaps what each part is packed to."""
    at, found = 0, []
    for part in side.parts:
        assert isinstance(part, Nest)
        found.append(dense[at : at + part.size].view(dtype_of(part.element)).reshape(part.counts))
        at += part.size
    return found


def _listed(blocks: Blocks, memory: Memory, dense: Memory, *, packs: bool) -> Call:
    """Elements, or rows, of a table by their numbers; of unequal lengths one slice after another."""
    if len(blocks.lengths) > 1:
        return _sliced(blocks, memory, dense, packs=packs)
    table, rows, numbers = _table(blocks, memory, dense)
    if packs:
        return lambda: np.take(table, numbers, axis=0, out=rows, mode="clip")

    def put() -> None:
        table[numbers] = rows

    return put


def _table(blocks: Blocks, memory: Memory, dense: Memory) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    length = int(blocks.lengths[0])
    dtype = dtype_of(blocks.element)
    whole = memory[: len(memory) // (blocks.element * length) * blocks.element * length]
    shape = (-1,) if length == 1 else (-1, length)
    return (
        whole.view(dtype).reshape(shape),
        dense.view(dtype).reshape(shape),
        (blocks.places // length).astype(np.int64),
    )


def _sliced(blocks: Blocks, memory: Memory, dense: Memory, *, packs: bool) -> Call:
    ends = np.cumsum(blocks.lengths) * blocks.element
    pairs = []
    for place, length, end in zip(blocks.places.tolist(), blocks.lengths.tolist(), ends.tolist(), strict=True):
        at, size = place * blocks.element, length * blocks.element
        pair = (dense[end - size : end], memory[at : at + size])
        pairs.append(pair if packs else pair[::-1])

    def every() -> None:
        for to, of in pairs:
            to[:] = of

    return every


def _torch(torch: Any, source: DrawnSide, read: Memory, target: DrawnSide, write: Memory) -> Call | None:
    """None where tensors have no such strides or elements."""
    (part, *_), (other, *_) = source.parts, target.parts
    if isinstance(part, Blocks) or isinstance(other, Blocks):
        blocks, memory, dense = (part, read, write) if isinstance(part, Blocks) else (other, write, read)
        assert isinstance(blocks, Blocks)
        if len(blocks.lengths) > 1 or dtype_of(blocks.element).kind == "V":
            return None
        table, rows, numbers = (torch.from_numpy(_signed(a)) for a in _table(blocks, memory, dense))
        if isinstance(part, Blocks):
            return lambda: torch.index_select(table, 0, numbers, out=rows)
        return lambda: table.index_copy_(0, numbers, rows)
    pairs = _pairs(source, read, target, write)
    views = [view for pair in pairs for view in pair]
    if any(v.dtype.kind == "V" or any(s < 0 or s % v.itemsize for s in v.strides) for v in views):
        return None
    if any(v.ctypes.data % v.itemsize for v in views):
        return None
    tensors = [(torch.from_numpy(_signed(to)), torch.from_numpy(_signed(of))) for to, of in pairs]
    return lambda: [to.copy_(of) for to, of in tensors]


def _signed(array: NDArray[Any]) -> NDArray[Any]:
    """Of a type that torch has."""
    return array.view(f"i{array.itemsize}") if array.dtype.kind == "u" and array.itemsize > 1 else array


# --- the race ---------------------------------------------------------------------------------------------------------


def race(calls: Mapping[str, Call], milliseconds: float) -> dict[str, list[float]]:
    """Times of each in nanoseconds, one in every round, in a random order, until the time is over; the first call is
    Lacuna's. tools/bench/copy/measure.cpp has the same rule for the bench's own contenders."""
    times = {name: _times(call) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    spent = dict.fromkeys(calls, 0.0)
    order, (first, *_) = list(calls), calls
    rng, budget = random.Random(1), milliseconds * 1e6
    collects = gc.isenabled()
    gc.disable()
    try:
        for done in range(_MOST):
            rng.shuffle(order)
            for name in order:
                if name == first or done < _PATIENCE or spent[name] <= budget:
                    taken = _time(calls[name], times[name])
                    samples[name].append(taken / times[name])
                    spent[name] += taken
            if sum(spent.values()) > budget and done + 1 >= (_PATIENCE if spent[first] > budget else _FEWEST):
                break
    finally:
        if collects:
            gc.enable()
    return samples


def _time(call: Call, times: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(times):
        call()
    return max(time.perf_counter_ns() - start, 1)


def _times(call: Call) -> int:
    once = _time(call, 1)
    if once < _LONG_NS:
        once = _time(call, 1)
    return max(1, min(1000, round(_SAMPLE_NS / once)))


def _against(name: str, ours: list[float], theirs: list[float]) -> Against:
    ratio = median_of(a / b for a, b in zip(ours, theirs, strict=False))
    return Against(name, median_of(theirs).value, ratio.value, ratio.low, ratio.high)
