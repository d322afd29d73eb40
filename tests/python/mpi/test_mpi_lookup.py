"""The dlsym of the libraries for MPI programs is the C library's for whatever is no function of the program's MPI."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lacuna.mpi.interposer import ABIS, preload_library

BEHIND = """
#define _GNU_SOURCE
#include <dlfcn.h>
int atoi(const char* text) {
  int (*next)(const char*) = (int (*)(const char*))dlsym(RTLD_NEXT, "atoi");
  return 1000 + next(text);
}
"""
"""Comes before the C library, and asks for the next atoi of its own name."""

LIBRARY = """
int MPI_Send(void) { return 7; }
int PMPI_Send(void) { return 8; }
int MPI_Recv(void);
int calls_recv(void) { return MPI_Recv(); }
"""
"""Has a function of MPI's name, and is no MPI: it has no PMPI_Init."""

PROGRAM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int MPI_Recv(void) { return 9; }
static void say(const char* name, void* found) {
  Dl_info info;
  const char* wrong = dlerror();
  printf("%s: %s", name, wrong == NULL ? "no error" : wrong);
  if (found != NULL && dladdr(found, &info) != 0) printf(", in %s", strrchr(info.dli_fname, '/'));
  puts("");
}
int main(int argc, char** argv) {
  void* library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
  const char* names[] = {"MPI_Send", "PMPI_Send", "MPI_Recv", "MPI_", "M", "", "calls_recv", "atoi",
                         "MPIX_Request_is_complete"};
  printf("%d\\n", atoi("5"));
  dlerror();
  for (unsigned i = 0; i < sizeof names / sizeof names[0]; ++i) {
    say(names[i], dlsym(library, names[i]));
    if (strstr(names[i], "MPI") == NULL) say(names[i], dlsym(RTLD_DEFAULT, names[i]));
    if (strstr(names[i], "MPI") == NULL) say(names[i], dlsym(RTLD_NEXT, names[i]));
  }
  say("dlsym", dlsym(RTLD_NEXT, "malloc"));
  say("dlvsym", dlvsym(RTLD_DEFAULT, "malloc", "GLIBC_2.2.5"));
  printf("%d\\n", ((int (*)(void))dlsym(library, "MPI_Send"))());
  return 0;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lookup")
    for name, text in (("behind", BEHIND), ("library", LIBRARY), ("program", PROGRAM)):
        (folder / f"{name}.c").write_text(text)
        kind = ["-rdynamic"] if name == "program" else ["-shared", "-fPIC"]
        line = ["cc", "-w", "-O0", *kind, str(folder / f"{name}.c"), "-o", str(folder / name), "-ldl"]
        subprocess.run(line, check=True, capture_output=True)
    return folder


def run(folder: Path, *preloads: Path) -> str:
    variables = {**os.environ, "LD_PRELOAD": ":".join(map(str, preloads))}
    line = [str(folder / "program"), str(folder / "library")]
    return subprocess.run(line, env=variables, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("abi", sorted(ABIS))
def test_what_is_no_function_of_the_mpi_is_found_as_ever(abi: str, built: Path) -> None:
    plain = run(built, built / "behind")
    assert "1005\n" in plain
    assert "MPI_Send: no error, in /library" in plain
    assert "undefined symbol: MPI_\n" in plain
    ours = preload_library(abi)
    assert run(built, ours, built / "behind") == plain
    assert run(built, built / "behind", ours) == plain
    assert run(built, ours) == run(built)
