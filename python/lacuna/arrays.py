"""Copies between arrays, wherever their memory is."""

from __future__ import annotations

from typing import Any

from lacuna import _core, device
from lacuna._core import Layout


def copy(
    target: Any,
    source: Any,
    stream: int | None = None,
    *,
    as_bytes: bool = False,
    threads: int = 1,
    target_layout: Layout | None = None,
    target_offset: int = 0,
    source_layout: Layout | None = None,
    source_offset: int = 0,
) -> None:
    """Copies one strided view into another of as many bytes, in index order, without staging: what target[...] = source
    does where both have one type and one shape.

    Shapes and strides may differ. Types of elements may not (nothing is converted), unless `as_bytes` is true: then the
    bytes of one type become those of another one. Plain bytes (bytes, bytearray, mmap) have no type.

    Both are arrays of the host (the buffer protocol, or DLPack in memory that the CPU reaches, which pinned and managed
    memory of a GPU are), or both are arrays of GPU memory (torch, CuPy, JAX), which are copied on `stream`, a CUDA
    stream's address: the current stream of the target's library by default. On the host more `threads` take part from
    some 256 KiB each.

    With `target_layout` or `source_layout` (arrays of the host only) that layout's bytes are meant instead of the
    array's elements; it lies `target_offset` or `source_offset` bytes behind the array's first element. The types of
    elements have no part in it then.

    Raises TypeError for different types, for Python objects (their references would not be counted), for what is no
    array, and for a GPU's memory with the host's; ValueError if the sizes differ, the target names bytes twice, or a
    byte is in both views (in GPU memory: if the spans of the views overlap), or if `threads` are not 1 to 1024, or more
    than 1 for GPU memory, or a layout reaches beyond its array; ValueError or BufferError, as the target's type does,
    if the target is read-only.
    """
    if target_layout is not None or source_layout is not None:
        _core.copy_layouts(target, target_layout, target_offset, source, source_layout, source_offset, threads)
        return
    if target_offset or source_offset:
        raise ValueError("an offset says where a layout lies: give source_layout or target_layout with it")
    if _core.has_host_buffer(target) and _core.has_host_buffer(source):
        _core.copy(target, source, as_bytes, threads)
        return
    on_device = [array for array in (target, source) if device.is_device_array(array)]
    if len(on_device) == 2:
        if threads != 1:
            raise ValueError(f"threads is {threads}; a copy of GPU memory has none, since the GPU does it")
        device.copy(target, source, stream=stream, as_bytes=as_bytes)
    elif all(device.is_host_memory(array) for array in on_device):
        _core.copy(target, source, as_bytes, threads)
    else:
        raise TypeError("one of the two is in GPU memory, the other one is not: copy it with its own library first")
