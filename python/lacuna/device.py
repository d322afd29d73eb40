"""Layouts of GPU memory, moved by the GPU: arrays of torch, CuPy, JAX, and whatever has `__cuda_array_interface__`.

    lacuna.device.copy(target, source)             one view into another of as many bytes, in index order
    lacuna.device.pack(layout, source, target)     the layout's bytes of an array, packed into a contiguous one
    lacuna.device.unpack(layout, source, target)   the inverse

Work is ordered by a stream: the one that is given (a CUDA stream's address), else the current one of the target's
library, else the default stream. Nothing waits but the first move between two layouts, which makes a plan; the 64 last
plans are kept.
"""

from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any, NamedTuple

from lacuna._core import Device, DeviceMemory, Layout, device_cards

__all__ = ["Device", "DeviceMemory", "View", "cards", "copy", "is_device_array", "look", "pack", "unpack", "view_of"]


class View(NamedTuple):
    """Where an array's elements are."""

    address: int  # of the first one, to which the rest is relative
    layout: Layout
    low: int  # the bytes that the elements span
    high: int
    device: int
    stream: int


def cards() -> list[dict[str, Any]]:
    """The GPUs: name, model, driver, processors, memory_bytes. Raises ValueError, which says why there are none."""
    return list(device_cards())


def look() -> tuple[list[dict[str, Any]], str | None]:
    """The GPUs, and why there are none."""
    try:
        return cards(), None
    except ValueError as error:
        return [], str(error).removeprefix("unsupported: ")


@cache
def _opened(name: str) -> Device:
    return Device(name)


def is_device_array(array: Any) -> bool:
    """Whether an object is an array of GPU memory."""
    return bool(getattr(array, "is_cuda", False)) or hasattr(array, "__cuda_array_interface__")


def _view(address: int, item: int, shape: tuple[int, ...], strides: tuple[int, ...], device: int, stream: int) -> View:
    """A view of elements of `item` bytes; strides in bytes."""
    if math.prod(shape) == 0:
        return View(address, Layout(), 0, 0, device, stream)
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), item + sum(r for r in reach if r > 0)
    return View(address, Layout.strided(item, list(shape), list(strides)), low, high, device, stream)


def view_of(array: Any) -> View:
    """What a GPU array is made of. Raises TypeError for what is none."""
    if getattr(array, "is_cuda", False) and hasattr(array, "data_ptr"):  # torch, whose bfloat16 the interface lacks
        item = array.element_size()
        strides = tuple(s * item for s in array.stride())
        stream = sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
        return _view(array.data_ptr(), item, tuple(array.shape), strides, array.device.index, stream)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{type(array).__name__} is no array of GPU memory: it has no __cuda_array_interface__")
    item = int(interface["typestr"][2:])
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or tuple(item * math.prod(shape[d + 1 :]) for d in range(len(shape)))
    device = getattr(getattr(array, "device", None), "id", 0) or 0
    return _view(interface["data"][0], item, shape, tuple(strides), device, _current_stream(array, interface))


def _current_stream(array: Any, interface: dict[str, Any]) -> int:
    """CuPy's current stream for its arrays; what the interface says for others, or the default stream."""
    if type(array).__module__.split(".")[0] == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return int(interface.get("stream") or 0)


def _within(layout: Layout, offset: int, view: View, role: str) -> None:
    low = offset + layout.true_lower_bound
    high = low + layout.true_extent
    if layout.size > 0 and (low < view.low or high > view.high):
        has = f"bytes {view.low} to {view.high}"
        raise ValueError(f"the layout covers bytes {low} to {high} of the {role}, which has {has}")


def _dense(view: View, layout: Layout) -> Layout:
    if view.layout.size != layout.size or view.layout.run_count > 1:
        has = f"{view.layout.size}, in {view.layout.run_count} runs"
        raise ValueError(f"the packed array must be contiguous and of {layout.size} bytes; it has {has}")
    return view.layout


def _move(
    source: tuple[Layout, int], target: tuple[Layout, int], view: View, stream: int | None, device: Device | None
) -> None:
    on = device if device is not None else _opened(f"cuda:{view.device}")
    on.move(*source, *target, view.stream if stream is None else stream)


def copy(target: Any, source: Any, *, stream: int | None = None, device: Device | None = None) -> None:
    """Copies one view of GPU memory into another of as many bytes, in index order, in one pass.

    `stream` is a CUDA stream's address; the current one of the target's library by default. `device` is the target's
    own by default. Raises ValueError if the sizes differ, the target names bytes twice, or the views overlap.
    """
    a, b = view_of(source), view_of(target)
    if a.layout.size and a.address + a.low < b.address + b.high and b.address + b.low < a.address + a.high:
        raise ValueError("the two views overlap in memory")
    _move((a.layout, a.address), (b.layout, b.address), b, stream, device)


def pack(
    layout: Layout,
    source: Any,
    target: Any,
    *,
    offset: int = 0,
    stream: int | None = None,
    device: Device | None = None,
) -> None:
    """Writes the layout's bytes of `source`, packed, to `target`, a contiguous array of as many bytes.

    The layout's base is `offset` bytes from the source's first element. Raises ValueError if the layout reaches beyond
    the source.
    """
    a, b = view_of(source), view_of(target)
    _within(layout, offset, a, "source")
    _move((layout, a.address + offset), (_dense(b, layout), b.address), b, stream, device)


def unpack(
    layout: Layout,
    source: Any,
    target: Any,
    *,
    offset: int = 0,
    stream: int | None = None,
    device: Device | None = None,
) -> None:
    """Writes packed bytes to the layout's places in `target`, and nowhere else. The inverse of pack()."""
    a, b = view_of(source), view_of(target)
    _within(layout, offset, b, "target")
    _move((_dense(a, layout), a.address), (layout, b.address + offset), b, stream, device)
