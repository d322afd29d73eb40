#!/usr/bin/env python3
"""Compiles kernels for GPUs with NVRTC, which needs neither a GPU nor a driver, into a C++ file of bytes.

    compile_kernels.py SOURCE --include DIR --output FILE.cpp    compile
    compile_kernels.py --find                                    print where NVRTC's library and cuda.h are

The library and the header come from the packages of requirements/build.txt. Machine code is made for each of
ARCHITECTURES; PTX for GPUs that come later.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ARCHITECTURES = ("sm_80", "sm_90")
PTX = "compute_80"  # what any later GPU can compile for itself


def find() -> tuple[Path, Path] | None:
    """libnvrtc and the folder of cuda.h, or None if a package is not installed."""
    nvidia = importlib.util.find_spec("nvidia")
    for folder in (nvidia.submodule_search_locations or []) if nvidia else []:
        libraries = sorted(Path(folder, "cuda_nvrtc", "lib").glob("libnvrtc.so.*"))
        header = Path(folder, "cuda_runtime", "include")
        if libraries and (header / "cuda.h").exists():
            return libraries[0], header
    return None


class Nvrtc:
    """The few functions of NVRTC that compile one file."""

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: object) -> int:
        return int(getattr(self.library, name)(*arguments))

    def must(self, name: str, *arguments: object) -> None:
        if code := self.call(name, *arguments):
            raise RuntimeError(f"{name}: {self.library.nvrtcGetErrorString(code).decode()}")

    def text(self, name: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self.must(f"{name}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.must(name, program, buffer)
        return buffer.raw

    def compile(self, source: Path, include: Path, architecture: str) -> bytes:
        """Machine code for sm_NN, PTX for compute_NN. Raises RuntimeError with the compiler's log."""
        program = ctypes.c_void_p()
        text = source.read_bytes()
        self.must("nvrtcCreateProgram", ctypes.byref(program), text, source.name.encode(), 0, None, None)
        options = [f"--gpu-architecture={architecture}", f"-I{include}", "-std=c++17", "-default-device"]
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if self.call("nvrtcCompileProgram", program, len(options), array):
            raise RuntimeError(self.text("nvrtcGetProgramLog", program).decode(errors="replace"))
        return self.text("nvrtcGetCUBIN" if architecture.startswith("sm_") else "nvrtcGetPTX", program)


def as_cpp(images: dict[str, bytes], namespace: str, function: str) -> str:
    """A C++ file that defines a function like images() of lacuna/device/cuda/images.hpp."""
    parts = ["// Made by cmake/compile_kernels.py.", '#include "lacuna/device/cuda/images.hpp"']
    parts += [f"namespace {namespace} {{", f"std::span<const lacuna::device::cuda::Image> {function}();", "namespace {"]
    for name, code in images.items():
        rows = (",".join(map(str, code[i : i + 64])) for i in range(0, len(code), 64))
        parts.append(f"alignas(64) constexpr unsigned char {name}[] = {{\n" + ",\n".join(rows) + "};")
    entries = ", ".join(
        f"{{{name.split('_')[1]}, {str(name.startswith('compute')).lower()}, {{{name}, sizeof {name}}}}}"
        for name in images
    )
    parts.append(f"constexpr lacuna::device::cuda::Image kImages[] = {{{entries}}};\n}}")
    parts.append(f"std::span<const lacuna::device::cuda::Image> {function}() {{ return kImages; }}\n}}")
    return "\n".join(parts) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, nargs="?")
    parser.add_argument("--include", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--namespace", default="lacuna::device::cuda")
    parser.add_argument("--function", default="images")
    parser.add_argument("--keep", type=Path, help="also write the code here, a file for each architecture")
    parser.add_argument("--find", action="store_true")
    arguments = parser.parse_args()
    found = find()
    if arguments.find:
        print(f"{found[0]};{found[1]}" if found else "")
        return 0
    if found is None:
        print("compile_kernels.py: NVRTC is not installed: pip install -r requirements/build.txt", file=sys.stderr)
        return 1
    compiler = Nvrtc(found[0])
    try:
        targets = (*ARCHITECTURES, PTX)
        with ThreadPoolExecutor() as pool:  # a call of NVRTC does not hold the interpreter
            code = pool.map(lambda target: compiler.compile(arguments.source, arguments.include, target), targets)
            images = dict(zip(targets, code, strict=True))
    except RuntimeError as error:
        print(f"{arguments.source}: {error}", file=sys.stderr)
        return 1
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        for name, code in images.items():
            (arguments.keep / name).write_bytes(code)
    arguments.output.write_text(as_cpp(images, arguments.namespace, arguments.function), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
