"""Layouts of device memory from Python, on the emulated device; and on a GPU with torch, where there is one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import lacuna
from lacuna.device import Device, DeviceMemory


class Array:
    """NumPy's array of the same shape and strides, in a device's memory."""

    def __init__(self, memory: DeviceMemory, array: np.ndarray[Any, Any], offset: int = 0) -> None:
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (memory.address + offset, False),
            "strides": array.strides,
            "version": 3,
        }


@pytest.fixture(scope="module")
def device() -> Device:
    return Device("emulated")


def on(device: Device, data: bytes) -> DeviceMemory:
    memory = DeviceMemory(device, len(data))
    memory.write(data)
    return memory


def test_copies_a_strided_view(device: Device) -> None:
    host = np.arange(30 * 20, dtype=np.float32).reshape(30, 20)
    memory, target = on(device, host.tobytes()), DeviceMemory(device, host.nbytes)
    view = host[::2, 3:17].T
    assert lacuna.Layout.of(Array(memory, view)) == lacuna.Layout.of(view)
    dense = np.empty(view.shape, view.dtype)
    lacuna.device.copy(Array(target, dense), Array(memory, view, offset=12))
    assert target.read()[: view.nbytes] == np.ascontiguousarray(view).tobytes()


def test_packs_and_unpacks_as_the_host_does(device: Device) -> None:
    rng = random.Random(1)
    layout = lacuna.Layout.paged(48, rng.sample(range(100), 30))
    data = rng.randbytes(4800)
    flat = np.frombuffer(data, np.uint8)
    packed = np.empty(layout.size, np.uint8)
    source, target = on(device, data), DeviceMemory(device, layout.size)
    lacuna.device.pack(layout, Array(source, flat), Array(target, packed))
    assert target.read() == layout.pack(data)

    back = on(device, bytes(4800))
    lacuna.device.unpack(layout, Array(target, packed), Array(back, flat))
    expected = bytearray(4800)
    layout.unpack(layout.pack(data), expected)
    assert back.read() == bytes(expected)


def test_compares_the_types_of_elements(device: Device) -> None:
    numbers = np.arange(16, dtype="f4")
    memory, target = on(device, numbers.tobytes()), DeviceMemory(device, 64)
    for other in (np.empty(16, "i4"), np.empty(16, ">f4"), np.empty(8, "f8"), np.empty(64, "u1")):
        target.write(bytes(64))
        with pytest.raises(
            TypeError, match=r"the target has elements of type .*, the source of float32.*as_bytes=True"
        ):
            lacuna.copy(Array(target, other), Array(memory, numbers))
        assert target.read() == bytes(64)
        lacuna.copy(Array(target, other), Array(memory, numbers), as_bytes=True)
        with pytest.raises(ValueError, match="threads is 2; a copy of GPU memory has none"):
            lacuna.copy(Array(target, other), Array(memory, numbers), as_bytes=True, threads=2)
        assert target.read() == numbers.tobytes()


def test_refuses_what_is_wrong(device: Device) -> None:
    memory = DeviceMemory(device, 64)
    flat = np.empty(64, np.uint8)
    with pytest.raises(ValueError, match="covers bytes 0 to 65 of the source, which has bytes 0 to 64"):
        lacuna.device.pack(lacuna.Layout.bytes(65), Array(memory, flat), Array(memory, flat))
    with pytest.raises(ValueError, match="must be contiguous and of 8 bytes; it has 64"):
        lacuna.device.pack(lacuna.Layout.bytes(8), Array(memory, flat), Array(memory, flat))
    frozen, other = Array(memory, flat), DeviceMemory(device, 64)
    frozen.__cuda_array_interface__["data"] = (memory.address, True)
    with pytest.raises(ValueError, match="read-only"):
        lacuna.device.copy(frozen, Array(other, flat))
    frozen.__cuda_array_interface__["mask"] = frozen
    with pytest.raises(ValueError, match="mask"):
        lacuna.device.view_of(frozen)
    with pytest.raises(ValueError, match="overlap in memory"):
        lacuna.device.copy(Array(memory, flat), Array(memory, flat))
    with pytest.raises(TypeError, match="no array of GPU memory"):
        lacuna.device.view_of(flat)
    with pytest.raises(TypeError, match="one of the two is in GPU memory"):
        lacuna.copy(flat, Array(memory, flat))
    with pytest.raises(ValueError, match="a device called 'gpu'; it is cuda:N or emulated"):
        Device("gpu")


def test_says_why_there_is_no_gpu() -> None:
    try:
        found = lacuna.device.cards()
    except ValueError as error:
        assert "GPU" in str(error)  # noqa: PT017
    else:
        assert all(card["name"].startswith("cuda:") for card in found)


def test_copies_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    source = torch.arange(1 << 16, device="cuda").reshape(256, 256)
    target = torch.empty_like(source)
    lacuna.copy(target, source.T)
    torch.cuda.synchronize()
    assert torch.equal(target, source.T)
