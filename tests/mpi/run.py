#!/usr/bin/env python3
"""Runs MPI programs plain and with Lacuna loaded before their MPI, and compares what they print and how they end.

    python tests/mpi/run.py [--mpi NAME]... [--only PROGRAM]... [--lib DIR] [--plain-only] [--repeat N]
                            [--seed N] [--inter-node] [--says TEXT] [--build-only] [--remember]

`make peers` installs the MPIs. PROGRAM is the name of a file beside this one or in fortran/, without .c or .F90, and
for `progress` and its like also `progress-barrier`. Without --lib the libraries are those of LACUNA_MPI_LIB_DIR or of
the installed package. --seed makes other types and other data; programs that are started by hand take
LACUNA_CHECK_SEED for it.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import remembered

from lacuna.mpi.applications import MissingError
from lacuna.mpi.fortran import compiler_of
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError, find
from lacuna.mpi.interposer import MpiError, preload_library
from lacuna.mpi.launch import Launch, launch
from lacuna.mpi.two_hosts import Hosts, HostsError, two_hosts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILT = ROOT / "build" / "mpi_programs"
GIVE_UP_SECONDS = int(os.environ.get("LACUNA_CHECK_SECONDS") or 170)
"""When a program gives up and says what it had: far more than it takes on a machine that is busy otherwise."""
SECONDS = GIVE_UP_SECONDS + 10.0
"""What a run may take."""
VANISH_SECONDS = 60.0
"""How long a rank may still be there once the launcher has ended: launchers kill a moment later."""
PLAIN_TRIES = 2
DOUBT_RUNS = 5
"""So often an MPI is tried alone after a run with the library failed: does it fail by itself now and then?"""

VARIANTS = {
    "progress": {
        "barrier": 2,
        "waitall": 2,
        "probe": 2,
        "dup": 2,
        "fence": 2,
        "file": 2,
        "finalize": 2,
        "both_first": 2,
        "chain": 4,
    },
    "ring": {"": 3, "crowd": 24},
    "patterns": {"isend_many": 2, "thousands": 2, "halo": 4, "big": 2},
}
"""Programs that do one of several things, by their first argument, and with how many ranks."""

_MARK = "LACUNA_TEST_RUN"
_OWN_STDERR = 'exec 2>>"stderr-$$.txt"; exec "$@"'
"""A rank's stderr goes to its own file. Launchers cut what ranks say, within a line too, mix it, and lose its end."""
_SHARED_NAME = "lacuna"
"""In the name of what the library would leave in /dev/shm. What other programs and the MPIs have there is theirs."""


FORTRAN = ["-g", "-O1", "-ffree-line-length-none", "-fallow-argument-mismatch", "-w"]
"""mpif.h declares nothing, so that gfortran sees one function with many kinds of arguments."""


HOSTS_FAIL = {
    ("mpich4-debian", "newer"): "MPICH 4.0 counts the uses of a persistent operation's datatypes wrong",
    ("mpich5-abi", "newer"): "MPICH 5.0's MPI_Isendrecv_replace mixes up its data by the standard's ABI",
    ("mpich5-abi", "persistent"): "MPICH 5.0 forgets the status of a persistent request once looked at, by that ABI",
    ("mpich5-abi", "types"): "MPICH 5.0's MPI_Get_elements fails an assertion of its own by the standard's ABI",
}
"""What an MPI does wrong by itself: an MPI, a program, and why."""

HOSTS_NEED = {("openmpi5", "onesided"): {"OMPI_MCA_btl": "self,tcp"}}
"""Variables without which an MPI fails by itself. Open MPI 5.0.11 ends one time in three in MPI_Win_create, when
its btl sm hands it an answer that belongs to the window before (mca_btl_sm_poll_handle_frag)."""


class RunError(Exception):
    """Something could not be run or compared; the text says what and why."""


class CannotError(RunError):
    """An MPI cannot do what a program asks for, without the library neither."""


class HostFailsError(CannotError):
    """An MPI failed or hung by itself: nothing is known of the library then."""


@dataclass(frozen=True)
class Program:
    source: Path
    argument: str
    ranks: int

    @property
    def name(self) -> str:
        return self.source.stem + (f"-{self.argument}" if self.argument else "")


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    code: int | None  # None: it took too long
    out: str
    err: str
    seconds: float
    left: str
    """The lines of ranks that gave up."""
    remains: tuple[str, ...] = ()
    """Shared memory of Lacuna, and processes, that were still there when the launcher had ended long ago."""
    running: int = 0
    """Processes of ranks when the time was over."""

    @property
    def launcher_hung(self) -> bool:
        """Its ranks, which alone have the library, had all ended."""
        return self.code is None and self.running == 0

    def text(self) -> str:
        ending = f"ended with {self.code}"
        if self.code is None:
            ending = f"took longer than {SECONDS:.0f} s, with {self.running} processes of ranks left,"
        parts = [f"{ending} after {self.seconds:.1f} s"]
        parts += [line for line in (self.out + self.left).splitlines() if line.startswith("WRONG")][:50]
        for name, said in (("stdout", self.out), ("stderr", self.err), ("lines of ranks that gave up", self.left)):
            parts.append(f"--- {name}\n{said[-4000:]}")
        parts += [f"--- left behind: {what}" for what in self.remains]
        return "\n".join(parts)

    def line(self) -> str:
        return " ".join(self.text().split())[:400]


def ends_well(done: Outcome) -> bool:
    return done.code == 0


def ends_early(done: Outcome) -> bool:
    """As a job of which a rank died has to."""
    return done.code not in (0, None) and not done.remains


def programs() -> list[Program]:
    found = []
    for source in [*sorted(HERE.glob("*.c")), *sorted((HERE / "fortran").glob("*.F90"))]:
        text = source.read_text()
        ranks = re.search(r"^(?:/\*|!) ranks: (\d+)(?: \*/)?$", text, re.MULTILINE)
        if "\nint main(" not in text and "\nprogram " not in text:
            continue
        if ranks is None:
            raise RunError(f"{source} does not say how many ranks it has")
        for argument, own in VARIANTS.get(source.stem, {"": int(ranks[1])}).items():
            found.append(Program(source, argument, own))
    return found


def installed(which: str = "all") -> list[MpiInstallation]:
    """The MPIs that scripts/peers.sh finds; `which` is its verb."""
    said = subprocess.run([str(ROOT / "scripts" / "peers.sh"), which], capture_output=True, text=True, check=True)
    return find([line.replace("\t", "=") for line in said.stdout.splitlines()]) if said.stdout else []


def library(peer: MpiInstallation) -> Path:
    """What is loaded before this MPI's programs. Raises MpiError where it is missing."""
    if peer.name.endswith("-abi"):
        return preload_library("abi")
    return preload_library("openmpi" if peer.name.startswith("openmpi") else "mpich")


def build(peer: MpiInstallation, source: Path, folder: Path) -> Path:
    """Compiles a program unless `folder` has it from the same sources. Raises CannotError."""
    if (peer.name, source.stem) in HOSTS_FAIL:
        raise CannotError(HOSTS_FAIL[peer.name, source.stem])
    built = folder / peer.name / source.stem
    parts = (source, *HERE.glob("*.h"), *HERE.glob("fortran/*.inc"), peer.mpicc, Path(__file__))
    if built.is_file() and built.stat().st_mtime > max(file.stat().st_mtime for file in parts):
        return built
    built.parent.mkdir(parents=True, exist_ok=True)
    new = built.with_name(f"{built.name}.{os.getpid()}")  # others may compile it too, or run it
    if source.suffix == ".F90":
        try:
            compiler = compiler_of(peer, "mpi_f08" if source.stem == "f08" else "mpi")
        except MissingError as e:
            raise CannotError(str(e)) from e
        line = [*compiler.line, *FORTRAN, str(source), "-o", str(new), *compiler.libraries]
    else:
        warnings = ["-Wall", "-Wextra"]
        line = [str(peer.mpicc), "-O1", "-g", "-std=gnu11", *warnings, "-pthread", str(source), "-o", str(new)]
    done = subprocess.run(line, env=peer.environment(), capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RunError(f"{peer.name}: {peer.mpicc} cannot compile {source.name}: {done.stderr.strip()}")
    if "warning:" in done.stderr:
        print(done.stderr, file=sys.stderr)
    new.replace(built)
    return built


def run(
    started: Launch, program: Program, built: Path, preload: Path | None, more: dict[str, str] | None = None
) -> Outcome:
    """One run, in an empty folder. Only the ranks get the library, not the launcher. `more`: variables."""
    started = started.of(program.ranks)
    needed = HOSTS_NEED.get((built.parent.name, built.name), {})  # build() names them
    own = {
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "LACUNA_CHECK_SECONDS": str(GIVE_UP_SECONDS),
        "LACUNA_MPI_DECODE": "1",  # programs that use many types once are there to test the decoding
        "LACUNA_MPI_OFFER": "8192",  # else an MPI that is fast would get most of their messages as they are
        "LACUNA_MPI_PROFILE": "/nonexistent",
        "LACUNA_MPI_DISTANCE": "near",  # which way is taken shall not depend on where the machine's CPUs are
    }
    environment = own | started.environment | needed | (more or {})
    mark = f"{_MARK}={secrets.token_hex(8)}"
    inner = ["env", mark, "sh", "-c", _OWN_STDERR, "sh"]
    inner += ["env", *([f"LD_PRELOAD={preload}"] if preload else []), str(built)]
    shared = _shared_memory()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = subprocess.Popen(
            [*started.line, *inner, *program.argument.split()],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        code: int | None = None
        remains: tuple[str, ...] = ()
        running = 0
        try:
            code = process.wait(SECONDS)
            remains = _remains(mark, shared)
        except subprocess.TimeoutExpired:
            running = len(list(_marked(mark)))
        finally:
            _end(process, mark)
        seconds = time.monotonic() - begin
        out.seek(0)
        err.seek(0)
        said = [file.read().decode(errors="replace") for file in (out, err)]
        of_ranks, left = (
            [file.read_text(errors="replace") for file in sorted(Path(folder).glob(names))]
            for names in ("stderr-*.txt", "rank-*.txt")
        )
        return Outcome(code, said[0], "".join([said[1], *of_ranks]), seconds, "\n".join(left), remains, running)


def run_plain(
    started: Launch,
    program: Program,
    built: Path,
    more: dict[str, str] | None = None,
    wanted: Callable[[Outcome], bool] = ends_well,
) -> Outcome:
    """A run without the library, with which others are compared. Raises HostFailsError where none is as it should."""
    for _ in range(PLAIN_TRIES):
        done = run(started, program, built, None, more)
        if wanted(done):
            return done
    raise HostFailsError(f"the MPI fails by itself, without Lacuna: {done.line()}")


def doubt(
    bad: Outcome,
    started: Launch,
    program: Program,
    built: Path,
    more: dict[str, str] | None = None,
    wanted: Callable[[Outcome], bool] = ends_well,
) -> None:
    """After a run with the library that was not as it should. Raises HostFailsError where it is the MPI that fails."""
    if bad.launcher_hung:
        raise HostFailsError(f"the MPI's launcher hangs, though all ranks have ended: {bad.line()}")
    for number in range(DOUBT_RUNS):
        done = run(started, program, built, None, more)
        if not wanted(done):
            raise HostFailsError(f"the MPI fails by itself too, without Lacuna, in try {number + 1}: {done.line()}")


def _shared_memory() -> set[str]:
    return {entry.name for entry in Path("/dev/shm").iterdir() if _SHARED_NAME in entry.name.lower()}


def _remains(mark: str, shared: set[str]) -> tuple[str, ...]:
    """What is there that was not."""
    deadline = time.monotonic() + VANISH_SECONDS
    while any(_marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    processes = [f"process {pid}, {VANISH_SECONDS:.0f} s after the launcher ended" for pid in _marked(mark)]
    return (*processes, *(f"/dev/shm/{name}" for name in sorted(_shared_memory() - shared)))


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Ends the launcher, which ends the ranks; and these by themselves, whatever the launcher did."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, ending)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2)
    for pid in _marked(mark):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes():
                    yield int(entry.name)


def agrees(peer: MpiInstallation, program: Program, built: Path, done: Outcome, options: str = "") -> bool | None:
    """Whether this is what the program prints without the library; None where that is not known."""
    name = f"{options}{peer.name} {program.name}"
    if name not in remembered.entries():
        return None
    seen = remembered.entry(built, program.source, program.argument, program.ranks, done.out)
    return remembered.agrees(name, seen)


def failure(plain: Outcome, other: Outcome, what: str) -> str | None:
    """Why a run is not as the plain one, which went well; None if it is."""
    if other.code != 0:
        return f"{what}: {other.text()}"
    if "cannot be preloaded" in other.err:  # the loader goes on without it
        return f"{what}: {other.err}"
    if other.out == plain.out:
        return None
    lines = difflib.unified_diff(plain.out.splitlines(), other.out.splitlines(), "plain", what, lineterm="", n=1)
    return f"{what} printed something else:\n" + "\n".join(list(lines)[:200])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--mpi", action="append", metavar="NAME", help="one of scripts/peers.sh list; may be repeated")
    parser.add_argument("--only", action="append", metavar="PROGRAM", help="may be repeated")
    parser.add_argument("--lib", type=Path, metavar="DIR", help="where liblacuna_mpi_openmpi.so and its like are")
    parser.add_argument("--plain-only", action="store_true", help="without Lacuna")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="all N runs must print the same")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="other types and other data")
    parser.add_argument(
        "--inter-node", action="store_true", help="ranks on two hosts, which are network namespaces; takes root"
    )
    parser.add_argument("--says", metavar="TEXT", help="tell of which programs this is on stderr, preloaded")
    parser.add_argument("--build-only", action="store_true", help="run nothing")
    parser.add_argument("--remember", action="store_true", help="without Lacuna; keep what the programs print")
    parser.add_argument("--output", action="store_true", help="show what the programs print")
    return parser.parse_args()


INTER_NODE = {"LACUNA_MPI_OFFER_INTER_NODE": "254", "LACUNA_MPI_CHUNK": "10007"}
"""Variables with which whatever can goes between hosts in chunks, whose edges are anywhere."""


def _both(peer: MpiInstallation, hosts: Hosts | None, program: Program, options: argparse.Namespace) -> bool:
    """Runs it as often as asked for, and says how that went."""
    started = launch(peer, hosts)
    try:
        built = build(peer, program.source, BUILT)
    except CannotError as e:
        print(f"{peer.name} {program.name}: skipped: {e}", flush=True)
        return True
    if options.build_only:
        return True
    preload = None if options.plain_only or options.remember else library(peer)
    more = {"LACUNA_CHECK_SEED": str(options.seed), **(INTER_NODE if hosts else {})}
    first: Outcome | None = None
    times = []
    try:
        for number in range(options.repeat):
            for loaded in (None,) if preload is None else (None, preload):
                what = f"{'preloaded' if loaded else 'plain'}, run {number + 1}"
                if loaded:
                    done = run(started, program, built, loaded, more)
                else:
                    done = run_plain(started, program, built, more)
                times.append(done.seconds)
                first = first or done
                if why := failure(first, done, what):
                    if not ends_well(done):
                        doubt(done, started, program, built, more)
                    print(f"{peer.name} {program.name}: FAILED\n{why}", flush=True)
                    return False
    except HostFailsError as e:
        print(f"{peer.name} {program.name}: skipped: {e}", flush=True)
        return True
    if options.remember and first:
        name = f"{'--inter-node ' if hosts else ''}{peer.name} {program.name}"
        entry = remembered.entry(built, program.source, program.argument, program.ranks, first.out)
        remembered.remember({name: entry})
    if options.output and first:
        print(first.out, end="")
    said = f", says {options.says!r}" if options.says and options.says in done.err else ""
    print(f"{peer.name} {program.name}: ok, {' '.join(f'{seconds:.1f}' for seconds in times)} s{said}", flush=True)
    return True


def main() -> int:
    options = _parse()
    if options.lib:
        os.environ["LACUNA_MPI_LIB_DIR"] = str(options.lib.absolute())
    failed = []
    begin = time.monotonic()
    try:
        peers = [peer for peer in installed() if not options.mpi or peer.name in options.mpi]
        wanted = [p for p in programs() if not options.only or p.name in options.only or p.source.stem in options.only]
        if not peers or not wanted:
            raise RunError("there is no such MPI (`make peers` installs them)" if wanted else "no such program")
        with two_hosts() if options.inter_node and not options.build_only else contextlib.nullcontext() as hosts:
            for peer in peers:
                failed += [
                    f"{peer.name} {program.name}" for program in wanted if not _both(peer, hosts, program, options)
                ]
    except (RunError, MpiInstallationError, MpiError, HostsError) as e:
        print(e, file=sys.stderr)
        return 2
    print(f"{time.monotonic() - begin:.0f} s; " + (f"failed: {', '.join(failed)}" if failed else "all passed"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
