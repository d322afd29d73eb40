#!/usr/bin/env python3
"""Times torch and CuPy on the rows that lacuna-device-bench measured, where arrays can express them.

    array_libraries.py BENCH.jsonl     reads its rows, writes a JSON object for each: name, lacuna_us, us of both

As there, caches hold something else before each call, the median of 11 counts, and every result is verified.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

try:
    import cupy
except ImportError:
    cupy = None

TYPES = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}
REPEATS = 11
SCRATCH = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")


def median_us(call: Callable[[], object]) -> float:
    """The median time of a call on the current stream, in microseconds."""
    times = []
    for repeat in range(REPEATS + 1):
        SCRATCH.fill_(repeat)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return float(statistics.median(times[1:]))


def as_cupy(tensor: torch.Tensor) -> Any:
    return cupy.from_dlpack(tensor)


def strided(array: dict[str, Any], pack: bool) -> dict[str, tuple[Callable[[], object], Callable[[], bool]]]:
    """What copies between a strided array and a contiguous one, and tells whether it did."""
    dtype = getattr(torch, TYPES[array["item"]])
    shape, strides = array["shape"], array["strides"]
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = torch.randint(0, 100, (span,), dtype=torch.uint8, device="cuda").to(dtype)
    view = memory.as_strided(shape, strides)
    dense = torch.randint(0, 100, (view.numel(),), dtype=torch.uint8, device="cuda").to(dtype).reshape(shape)
    to, source = (dense, view) if pack else (view, dense)
    ways: dict[str, tuple[Callable[[], object], Callable[[], bool]]] = {
        "torch": (lambda: to.copy_(source), lambda: bool(torch.equal(to, source)))
    }
    if cupy is not None:
        x = cupy.lib.stride_tricks.as_strided(as_cupy(memory), shape, [s * array["item"] for s in strides])
        y = as_cupy(dense)
        a, b = (y, x) if pack else (x, y)
        ways["cupy"] = (lambda: cupy.copyto(a, b), lambda: bool(torch.equal(to, source)))
    return ways


def listed(array: dict[str, Any], pack: bool) -> dict[str, tuple[Callable[[], object], Callable[[], bool]]]:
    """The same of rows that a list picks."""
    dtype = getattr(torch, TYPES[array["item"]])
    count, width = array["shape"]
    table = torch.randint(0, 100, (array["list_of"], width), dtype=torch.uint8, device="cuda").to(dtype)
    rows = torch.randperm(array["list_of"], device="cuda")[:count]
    dense = torch.randint(0, 100, (count, width), dtype=torch.uint8, device="cuda").to(dtype)
    same = lambda: bool(torch.equal(table[rows], dense))  # noqa: E731
    if pack:
        ways: dict[str, tuple[Callable[[], object], Callable[[], bool]]] = {
            "torch": (lambda: torch.index_select(table, 0, rows, out=dense), same)
        }
        if cupy is not None:
            ways["cupy"] = (lambda: cupy.take(as_cupy(table), as_cupy(rows), axis=0, out=as_cupy(dense)), same)
        return ways
    ways = {"torch": (lambda: table.index_copy_(0, rows, dense), same)}
    if cupy is not None:
        ways["cupy"] = (lambda: as_cupy(table).__setitem__(as_cupy(rows), as_cupy(dense)), same)
    return ways


def main() -> int:
    if cupy is not None:
        cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream).use()
    wrong = 0
    for line in Path(sys.argv[1]).read_text().splitlines():
        row = json.loads(line).get("row")
        if row is None or "array" not in row:
            continue
        array, pack = row["array"], row["array"]["pack"]
        out: dict[str, Any] = {"name": row["name"], "lacuna_us": row["us"]["lacuna"], "us": {}}
        try:
            for name, (call, same) in (listed if array["list_of"] else strided)(array, pack).items():
                out["us"][name] = median_us(call)
                if not same():
                    out["wrong"] = name
                    wrong += 1
        except (RuntimeError, MemoryError) as error:
            out["error"] = str(error).splitlines()[0]
        if out["us"]:
            out["of_best"] = row["us"]["lacuna"] / min(out["us"].values())
        print(json.dumps(out), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
