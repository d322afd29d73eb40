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
from typing import TYPE_CHECKING, Any, NamedTuple

from lacuna._core import Device, DeviceMemory, Layout, device_cards, device_of

__all__ = ["Device", "DeviceMemory", "View", "cards", "copy", "is_device_array", "look", "pack", "unpack", "view_of"]


if TYPE_CHECKING:
    from lacuna.elements import ElementType

_HOST_KINDS = (1, 3, 11, 13)
"""DLPack's device types of memory that the CPU reaches: kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged."""


class View(NamedTuple):
    """Where an array's elements are."""

    address: int  # of the first one, to which the rest is relative
    layout: Layout
    low: int  # the bytes that the elements span
    high: int
    stream: int
    element: ElementType = None  # its type
    read_only: bool = False


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


def is_host_memory(array: Any) -> bool:
    """Whether the CPU reaches an object's memory, by what DLPack says of it: pinned and managed memory are such."""
    found = getattr(array, "__dlpack_device__", None)
    return found is not None and int(found()[0]) in _HOST_KINDS


def settle(number: int) -> None:
    """Waits until a GPU has done what its default stream holds, as DLPack orders it before managed memory may be read.
    Without a GPU nothing is under way. One that Lacuna does not use (it is too old) is waited for by the library that
    the array is of; raises ValueError if that is neither torch nor CuPy."""
    try:
        gpu = _opened(f"cuda:{number}")
    except ValueError:
        if not look()[0]:
            return
        if (torch := sys.modules.get("torch")) is not None:
            torch.cuda.synchronize(number)
        elif (cupy := sys.modules.get("cupy")) is not None:
            cupy.cuda.Device(number).synchronize()
        else:
            raise
        return
    gpu.wait()


def _view(address: int, item: int, shape: tuple[int, ...], strides: tuple[int, ...], stream: int) -> View:
    """A view of elements of `item` bytes; strides in bytes."""
    if math.prod(shape) == 0:
        return View(address, Layout(), 0, 0, stream)
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), item + sum(r for r in reach if r > 0)
    return View(address, Layout.strided(item, list(shape), list(strides)), low, high, stream)


def view_of(array: Any) -> View:
    """What a GPU array is made of. Raises TypeError for what is none, ValueError if its bytes are not its values."""
    from lacuna import elements  # later than `import lacuna`, since it brings NumPy in

    if getattr(array, "is_cuda", False) and hasattr(array, "data_ptr"):  # torch, whose bfloat16 the interface lacks
        if array.is_conj() or array.is_neg():
            raise ValueError("the tensor's bytes are not its values yet: call resolve_conj() or resolve_neg() first")
        item = array.element_size()
        strides = tuple(s * item for s in array.stride())
        stream = sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
        view = _view(array.data_ptr(), item, tuple(array.shape), strides, stream)
        return view._replace(element=elements.of_name(str(array.dtype).removeprefix("torch.")))
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{type(array).__name__} is no array of GPU memory: it has no __cuda_array_interface__")
    if interface.get("mask") is not None:
        raise ValueError("an array with a mask: its values are not its bytes alone")
    item = int(interface["typestr"][2:])
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or tuple(item * math.prod(shape[d + 1 :]) for d in range(len(shape)))
    address, read_only = interface["data"]
    view = _view(address, item, shape, tuple(strides), _current_stream(array, interface))
    name = getattr(getattr(array, "dtype", None), "name", "")  # which tells types apart that NumPy has not
    element = elements.of_name(interface["typestr"] if interface["typestr"][1] != "V" or not name else name)
    return view._replace(element=element, read_only=bool(read_only))


def _current_stream(array: Any, interface: dict[str, Any]) -> int:
    """CuPy's current stream for its arrays; what the interface says for others, or the default stream."""
    if type(array).__module__.split(".")[0] == "cupy":
        with array.device:
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
    layouts: tuple[Layout, Layout], views: tuple[View, View], offsets: tuple[int, int], stream: int | None
) -> None:
    """Moves one layout into another one, each of them `offset` bytes from its view's address."""
    source, target = views
    if layouts[0].size == 0:
        return
    if target.read_only:
        raise ValueError("the target is read-only")
    if (
        source.address + source.low < target.address + target.high
        and target.address + target.low < source.address + source.high
    ):
        raise ValueError("the spans of the two views overlap in memory")
    names = [device_of(view.address) for view in views]
    if names[0] != names[1]:
        raise ValueError(
            f"the source is memory of {names[0]}, the target of {names[1]}: copy with their own library first"
        )
    addresses = (source.address + offsets[0], target.address + offsets[1])
    on = target.stream if stream is None else stream
    _opened(names[1]).move(layouts[0], addresses[0], layouts[1], addresses[1], on)


def copy(target: Any, source: Any, *, stream: int | None = None, as_bytes: bool = False) -> None:
    """Copies one view of GPU memory into another of as many bytes, in index order, in one pass.

    `stream` is a CUDA stream's address; the current one of the target's library by default. Raises TypeError if their
    elements have different types, unless `as_bytes` is true; ValueError if the sizes differ, the target names bytes
    twice or is read-only, the spans of the views overlap, or they are memory of two GPUs.
    """
    a, b = view_of(source), view_of(target)
    if not as_bytes:
        from lacuna import elements

        elements.check(b.element, a.element)
    _move((a.layout, b.layout), (a, b), (0, 0), stream)


def pack(layout: Layout, source: Any, target: Any, *, offset: int = 0, stream: int | None = None) -> None:
    """Writes the layout's bytes of `source`, packed, to `target`, a contiguous array of as many bytes.

    The layout's base is `offset` bytes from the source's first element. Raises ValueError if the layout reaches beyond
    the source, and as copy() does.
    """
    a, b = view_of(source), view_of(target)
    _within(layout, offset, a, "source")
    _move((layout, _dense(b, layout)), (a, b), (offset, 0), stream)


def unpack(layout: Layout, source: Any, target: Any, *, offset: int = 0, stream: int | None = None) -> None:
    """Writes packed bytes to the layout's places in `target`, and nowhere else. The inverse of pack()."""
    a, b = view_of(source), view_of(target)
    _within(layout, offset, b, "target")
    _move((_dense(a, layout), layout), (a, b), (0, offset), stream)
