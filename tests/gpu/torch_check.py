#!/usr/bin/env python3
"""Checks, with torch on a GPU, what the emulated device cannot: the caller's streams, CUDA graphs, tensors of any type.

    torch_check.py LIBLACUNA.SO

It speaks to Lacuna's C API, so that any Python with torch can run it. Prints a line for each check, and exits with 1
if one failed.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence

import torch

library = ctypes.CDLL(sys.argv[1])
library.lacuna_error_message.restype = ctypes.c_char_p
Handle = ctypes.c_void_p


def call(name: str, *arguments: object) -> None:
    if getattr(library, name)(*arguments):
        raise RuntimeError(f"{name}: {library.lacuna_error_message().decode()}")


def layout(tensor: torch.Tensor) -> Handle:
    """The tensor's elements in index order, relative to its first one."""
    made = Handle()
    call("lacuna_layout_bytes", ctypes.c_int64(tensor.element_size()), ctypes.byref(made))
    for n, stride in reversed(list(zip(tensor.shape, tensor.stride(), strict=True))):
        outer = Handle()
        step = ctypes.c_int64(stride * tensor.element_size())
        call("lacuna_layout_hvector", ctypes.c_int64(n), ctypes.c_int64(1), step, made, ctypes.byref(outer))
        made = outer
    return made


def addresses(tensors: Sequence[torch.Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*(t.data_ptr() for t in tensors))


class Plan:
    """Sources into targets, by one plan."""

    def __init__(self, device: Handle, targets: Sequence[torch.Tensor], sources: Sequence[torch.Tensor]) -> None:
        self.handle = Handle()
        src, dst = ((ctypes.c_void_p * len(ts))(*(layout(t).value for t in ts)) for ts in (sources, targets))
        call("lacuna_device_plan_make", device, len(sources), src, dst, 2, ctypes.byref(self.handle))
        self.targets, self.sources = targets, sources

    def move(self) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        call("lacuna_device_plan_move", self.handle, addresses(self.sources), addresses(self.targets), stream)


def move(device: Handle, target: torch.Tensor, source: torch.Tensor) -> None:
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    src, dst = ctypes.c_void_p(source.data_ptr()), ctypes.c_void_p(target.data_ptr())
    call("lacuna_device_move", device, layout(source), src, layout(target), dst, stream)


def types(device: Handle) -> bool:
    """Tensors of every size of element, permuted and sliced."""
    right = True
    for dtype in (torch.uint8, torch.bfloat16, torch.float32, torch.float64, torch.complex128, torch.bool):
        for permutation in ((2, 0, 1), (1, 2, 0), (2, 1, 0)):
            source = torch.randint(0, 2, (37, 65, 70), device="cuda").to(dtype)[:, 1:, ::2].permute(permutation)
            target = torch.empty(source.shape, dtype=dtype, device="cuda")
            move(device, target, source)
            right = right and torch.equal(target, source)
    return right


def streams(device: Handle) -> bool:
    """Work that waits for what the caller's stream holds, and that the stream waits for."""
    source, target = torch.zeros(64 << 20, device="cuda"), torch.zeros(32 << 20, device="cuda")
    plan = Plan(device, [target], [source[::2]])
    stream = torch.cuda.Stream()
    right = True
    for value in range(1, 20):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(2_000_000)
            source.fill_(value)
            plan.move()
            total = target.sum()
        stream.synchronize()
        right = right and bool(total == value * target.numel())
    return right


def graphs(device: Handle) -> bool:
    """A plan of several pairs, captured once and replayed with other data."""
    box = torch.zeros(40, 41, 42, device="cuda", dtype=torch.float64)
    faces = [box[0], box[-1], box[:, 0], box[:, -1], box[:, :, 0], box[:, :, -1]]
    targets = [torch.empty(face.shape, device="cuda", dtype=torch.float64) for face in faces]
    plan = Plan(device, targets, faces)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.move()
    right = True
    for _ in range(5):
        box.copy_(torch.rand_like(box))
        graph.replay()
        torch.cuda.synchronize()
        right = right and all(torch.equal(t, f) for t, f in zip(targets, faces, strict=True))
    return right


def main() -> int:
    device = Handle()
    call("lacuna_device_open", b"cuda:0", ctypes.byref(device))
    failed = 0
    for check in (types, streams, graphs):
        right = check(device)
        print(f"{check.__name__}: {'ok' if right else 'WRONG'}", flush=True)
        failed += not right
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
