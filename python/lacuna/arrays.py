"""Copies between arrays, wherever their memory is."""

from __future__ import annotations

from typing import Any

from lacuna import _core, device


def copy(target: Any, source: Any, stream: int | None = None) -> None:
    """Copies one strided view into another of as many bytes, in index order, without staging.

    Both are buffers of the host, or both are arrays of GPU memory (torch, CuPy, JAX), which are copied on `stream`, a
    CUDA stream's address: the current stream of the target's library by default. Raises ValueError if the sizes differ,
    the target names bytes twice, or the views overlap.
    """
    on_device = [device.is_device_array(array) for array in (target, source)]
    if not any(on_device):
        _core.copy(target, source)
    elif all(on_device):
        device.copy(target, source, stream=stream)
    else:
        raise TypeError("one of the two is in GPU memory, the other one is not: copy it with its own library first")
