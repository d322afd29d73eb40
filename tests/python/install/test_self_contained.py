"""What the package installs needs glibc and libgcc_s alone, and takes no notice of other libraries in the program."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection
from mpi_ready import Ready, program, run

import lacuna
from lacuna.mpi.interposer import ABIS, preload_library
from lacuna.mpi.launch import launch

PACKAGE = Path(lacuna.__path__[-1])
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1"}
NEWEST = {"GLIBC": (2, 34), "GCC": (4, 8)}
"""RHEL 9, Ubuntu 22.04 and Debian 12 have this glibc or a newer one, and a far newer libgcc_s."""
FOREIGN = ("libfmt.so.9", "libhwy.so.1", "libsodium.so.23", "libstdc++.so.6")
"""What the libraries would need, were they not self-contained."""


OF_LINKER = {"_init", "_fini", "_edata", "_end", "__bss_start"}


def binaries() -> list[Path]:
    """The module, the libraries and the programs of the package."""
    files = [*PACKAGE.glob("_core*.so"), *(PACKAGE / "lib").rglob("*.so*"), *(PACKAGE / "bin").iterdir()]
    return sorted(file for file in files if file.read_bytes()[:4] == b"\x7fELF")


def needed(file: Path) -> set[str]:
    with file.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".dynamic")
        assert isinstance(section, DynamicSection)
        return {tag.needed for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED"}


def symbol_versions(file: Path) -> set[str]:
    with file.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".gnu.version_r")
        assert isinstance(section, GNUVerNeedSection)
        return {version.name for _, versions in section.iter_versions() for version in versions}


def defined(file: Path) -> set[str]:
    with file.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".dynsym")
        assert isinstance(section, SymbolTableSection)
        return {symbol.name for symbol in section.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"}


@pytest.mark.parametrize("file", binaries(), ids=lambda file: file.name)
def test_a_binary_needs_glibc_and_libgcc_s_alone(file: Path) -> None:
    assert needed(file) - GLIBC - {f"ld-linux-{platform.machine().replace('_', '-')}.so.2"} == set()
    for name in symbol_versions(file):
        family, _, number = name.partition("_")
        assert family in NEWEST, name
        assert tuple(map(int, number.split(".")[:2])) <= NEWEST[family], name


def test_the_module_exports_its_own_entry_alone() -> None:
    (module,) = PACKAGE.glob("_core*.so")
    assert defined(module) == {"PyInit__core"}


@pytest.fixture(scope="module")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of libraries with the names and the symbols of the real ones. Each of their functions ends the program,
    and so does each use of their variables."""
    folder = tmp_path_factory.mktemp("fakes")
    for name in FOREIGN:
        real = next(Path("/usr/lib").glob(f"*-linux-gnu/{name}"), None)
        if real is None:
            pytest.skip(f"{name} is not installed: there is nothing to imitate")
        names = sorted(symbol for symbol in defined(real) if re.fullmatch(r"\w+", symbol) and symbol not in OF_LINKER)
        functions = [
            f'void f{i}(void) __asm__("{symbol}");\nvoid f{i}(void) {{ fake(); }}' for i, symbol in enumerate(names)
        ]
        (folder / "fake.c").write_text("\n".join([FAKE.replace("NAME", name), *functions]))
        line = ["cc", "-w", "-O0", "-shared", "-fPIC", f"-Wl,-soname,{name}", str(folder / "fake.c")]
        subprocess.run([*line, "-o", str(folder / name)], check=True, capture_output=True)
    return folder


def with_fakes(compiler: list[str | Path], fakes: Path, source: str | Path, built: Path, *more: str | Path) -> None:
    """Compiles a C program that needs the fakes before all else."""
    needs = ["-Wl,--no-as-needed", *(fakes / name for name in FOREIGN), "-Wl,--as-needed"]
    line = [*compiler, "-w", "-O1", *needs, source, "-o", built, f"-Wl,-rpath,{fakes},--disable-new-dtags", *more]
    subprocess.run(line, check=True, capture_output=True)


def test_a_program_with_other_libraries_in_front_is_served_by_our_own(fakes: Path, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    library = [f"-I{PACKAGE / 'include'}", f"-L{PACKAGE / 'lib'}", f"-Wl,-rpath,{PACKAGE / 'lib'}", "-llacuna"]
    with_fakes(["cc"], fakes, tmp_path / "program.c", tmp_path / "program", *library)
    for preload in ("", *(str(preload_library(abi)) for abi in ABIS)):
        done = subprocess.run(
            [tmp_path / "program"], env={**os.environ, "LD_PRELOAD": preload}, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, ""), preload
        assert done.stdout.splitlines() == [
            "column 2 9 16 23",
            "invalid argument: count is -1; it must not be negative",
            "fakes: 4",
        ]


def test_a_thread_is_cancelled_within_a_call(tmp_path: Path) -> None:
    """glibc unwinds its stack by libgcc_s, through the frames of the library."""
    (tmp_path / "program.c").write_text(CANCELLED)
    library = [f"-I{PACKAGE / 'include'}", f"-L{PACKAGE / 'lib'}", f"-Wl,-rpath,{PACKAGE / 'lib'}", "-llacuna"]
    line = ["cc", "-w", "-pthread", tmp_path / "program.c", "-o", tmp_path / "program", *library]
    subprocess.run(line, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "program", f"cancelled-{os.getpid()}"], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("/proc does not say what a thread waits for")
    assert (done.returncode, done.stdout, done.stderr) == (0, "cancelled\n", "")


@pytest.mark.parametrize("mpi", ["mpich5"])
def test_a_preloaded_program_with_other_libraries_in_front(mpi: str, fakes: Path, tmp_path: Path) -> None:
    peer = next((peer for peer in run.installed() if peer.name == mpi), None)
    if peer is None:
        pytest.skip(f"{mpi} is not here; `make peers` installs it")
    reuse = program("reuse")
    built = tmp_path / mpi / "reuse"
    built.parent.mkdir()
    with_fakes([peer.mpicc], fakes, reuse.source, built, "-pthread")
    ready = Ready(peer, launch(peer), tmp_path)
    done = ready.preloaded(reuse, built, {"LACUNA_MPI_REPORT": "1"})
    assert ": offered, " in done.err
    assert "a fake of" not in done.err


@pytest.mark.parametrize("library", [*(f"liblacuna_mpi_{abi}.so" for abi in ABIS), "liblacuna.so"])
def test_a_library_exports_what_is_its_own(library: str) -> None:
    script = Path(__file__).resolve().parents[2] / "api" / "exports.sh"
    done = subprocess.run([script, PACKAGE / "lib" / library], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


FAKE = """
#include <stdio.h>
#include <stdlib.h>
static void fake(void) { fputs("a fake of NAME was called\\n", stderr); abort(); }
"""

PROGRAM = """
#define _GNU_SOURCE
#include <lacuna.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
static int count(struct dl_phdr_info* info, size_t size, void* fakes) {
  *(int*)fakes += strstr(info->dlpi_name, "/fakes") != NULL;
  return 0;
}
int main(void) {
  lacuna_layout* item = NULL;
  lacuna_layout* column = NULL;
  if (lacuna_layout_bytes(1, &item) != LACUNA_OK) return 1;
  if (lacuna_layout_vector(4, 1, 7, item, &column) != LACUNA_OK) return 2;
  char field[28], packed[4];
  for (int i = 0; i < 28; ++i) field[i] = (char)i;
  if (lacuna_pack(column, field + 2, 0, 4, packed) != LACUNA_OK) return 3;
  printf("column %d %d %d %d\\n", packed[0], packed[1], packed[2], packed[3]);
  if (lacuna_layout_bytes(-1, &column) == LACUNA_OK) return 4;
  puts(lacuna_error_message());
  int fakes = 0;
  dl_iterate_phdr(count, &fakes);
  printf("fakes: %d\\n", fakes);
  return 0;
}
"""
"""Copies by a kernel that is chosen for this CPU, and fails with a formatted text."""

CANCELLED = """
#define _GNU_SOURCE
#include <lacuna.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef SYS_poll
#define SYS_poll SYS_ppoll
#endif
static _Atomic int number;
static void* wait_for_another(void* name) {
  lacuna_comm* ranks = NULL;
  number = (int)syscall(SYS_gettid);
  lacuna_connect(name, 2, -1, NULL, NULL, &ranks);
  return NULL;
}
static int waits(void) {
  char name[64];
  long call = -1;
  snprintf(name, sizeof name, "/proc/self/task/%d/syscall", number);
  FILE* file = fopen(name, "r");
  if (file == NULL) return -1;
  if (fscanf(file, "%ld", &call) != 1) call = -1;
  fclose(file);
  return call == SYS_poll || call == SYS_ppoll;
}
int main(int argc, char** argv) {
  pthread_t thread;
  void* ended = NULL;
  if (pthread_create(&thread, NULL, wait_for_another, argv[argc - 1]) != 0) return 1;
  while (number == 0) usleep(1000);
  for (int now = waits(); now != 1; now = waits()) {
    if (now < 0) return 77;
    usleep(1000);
  }
  pthread_cancel(thread);
  pthread_join(thread, &ended);
  puts(ended == PTHREAD_CANCELED ? "cancelled" : "ended");
  return 0;
}
"""
"""No other rank comes, so the thread waits in poll() until it is cancelled."""
