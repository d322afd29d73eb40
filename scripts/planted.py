#!/usr/bin/env python3
"""Plants bugs in a copy of the library, one by one, and has the simulator look for each.

    scripts/planted.py [--only NAME] [--seeds N] [--jobs N] [--json FILE]
    scripts/planted.py --list

Each is a fault that programmers make. What this shows is whether the stories of `lacuna_simulate`
(docs/design/simulator.md) would notice it. The copy is a clone of what is committed here, in a temporary folder; it is
built once, and after each plant what depends on it. Of each bug the first seed that fails is printed.

Exits with 1 if a bug is not found within so many seeds, or does not compile; with 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROTOCOL = "lacuna/protocol"


@dataclass(frozen=True)
class Bug:
    name: str
    what: str
    file: str
    right: str
    """What the file says; once."""
    wrong: str
    """What it says instead."""


BUGS = (
    Bug(
        "overtaken_message",
        "a receive from any source takes a message that an earlier receive waits for",
        f"{PROTOCOL}/matching/matching.hpp",
        "exact == nullptr || (wild != nullptr && wild->order < exact->order) ? wild : exact;",
        "wild != nullptr ? wild : exact;",
    ),
    Bug(
        "lost_wake_up",
        "a rank sleeps although its request has just ended",
        f"{PROTOCOL}/progress/progress.hpp",
        "if (idle()) continue;",
        "static_cast<void>(idle());",
    ),
    Bug(
        "key_after_its_end",
        "a peer may still reach the memory of requests that failed",
        f"{PROTOCOL}/request/completion.cpp",
        "    line->end();\n",
        "",
    ),
    Bug(
        "double_completion",
        "a put ends with the peer's word although its data has not gone, and again when that has",
        f"{PROTOCOL}/access/access.cpp",
        "  } else if (request.access.went) {\n",
        "  } else {\n",
    ),
    Bug(
        "forgotten_credit",
        "a receive that is posted again is not told to the peer",
        f"{PROTOCOL}/channel/queue_channel.cpp",
        "post(receive))\n      ++owed_;",
        "post(receive))\n      owed_ += receive != 0 ? 1 : 0;",
    ),
    Bug(
        "forgotten_room",
        "of each small message that was received some bytes stay taken",
        f"{PROTOCOL}/channel/credit.hpp",
        "received_ += bytes + kEagerCost;",
        "received_ += bytes;",
    ),
    Bug(
        "gaps_overwritten",
        "a short message is written as if its destination had no gaps",
        f"{PROTOCOL}/message/receives.cpp",
        "if (wanted > 0) local_.context.unpack(",
        "if (wanted > 0 && wanted <= 64)\n"
        "    std::memcpy(receive.base + receive.layout->true_lower_bound(), data, static_cast<std::size_t>(wanted));\n"
        "  else if (wanted > 0)\n"
        "    local_.context.unpack(",
    ),
    Bug(
        "request_never_ends",
        "puts and gets to a peer that dies do not end",
        f"{PROTOCOL}/request/completion.cpp",
        "&peer.announcements.expected, &peer.accesses.begun}",
        "&peer.announcements.expected}",
    ),
    Bug(
        "leaked_registration",
        "some registrations do not end with their last transfer",
        f"{PROTOCOL}/registration/registration.cpp",
        "if (--entry.leases > 0) return;",
        "if (--entry.leases > 0 || entry.region.bytes().size() % 7 == 3) return;",
    ),
    Bug(
        "stale_after_cancel",
        "a receive that was taken back still waits",
        f"{PROTOCOL}/communicator/communicator.cpp",
        "  parts_->local.matcher.withdraw(*request);\n",
        "",
    ),
    Bug(
        "wrong_offset",
        "the second part of a message begins a byte early",
        f"{PROTOCOL}/message/rendezvous_transfers.cpp",
        "return whole.slice(cut.begin(index), cut.size(index));",
        "return whole.slice(cut.begin(index) - (index == 1 ? 1 : 0), cut.size(index));",
    ),
    Bug(
        "over_too_early",
        "a short put ends before its bytes are there",
        f"{PROTOCOL}/request/completion.cpp",
        "if (access.needs_word && !access.word_came &&",
        "if (access.needs_word && request.bytes > 100 && !access.word_came &&",
    ),
)


class PlantError(Exception):
    """A bug cannot be planted, or what is made of it cannot be built."""


@dataclass
class Found:
    bug: str
    what: str
    seed: int | None
    """The first one that failed, as far as processes play in turn; nothing: none did."""
    how: str
    seconds: float


def plant(bug: Bug, tree: Path) -> None:
    """Raises PlantError where the file does not say that, once."""
    file = tree / bug.file
    text = file.read_text()
    if text.count(bug.right) != 1:
        raise PlantError(f"{bug.name}: {bug.file} says {bug.right!r} {text.count(bug.right)} times, not once")
    file.write_text(text.replace(bug.right, bug.wrong))


def run(*command: str | Path, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PlantError(f"{' '.join(map(str, command))}: {(done.stdout + done.stderr)[-2000:]}")


def build(tree: Path) -> Path:
    run("cmake", "--build", "--preset", "release", "--target", "lacuna_simulate", folder=tree)
    return tree / "build" / "release" / "bin" / "lacuna_simulate"


def look(program: Path, bug: Bug, seeds: int, jobs: int) -> Found:
    """Until the first seed that fails."""
    began = time.monotonic()
    line: list[str | Path] = [program, "--seeds", str(seeds), "--jobs", str(jobs)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, process_group=0)
    assert process.stdout is not None
    seed, how = None, ""
    for said in process.stdout:
        if found := re.match(r"seed (\d+) of .+? (?:fails:|ends its process: (.*))", said):
            seed, how = int(found[1]), found[2] or next(process.stdout, "").strip()
            break
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return Found(bug.name, bug.what, seed, how, round(time.monotonic() - began, 1))


def look_for_all(bugs: list[Bug], tree: Path, seeds: int, jobs: int) -> list[Found]:
    run("git", "clone", "--quiet", ROOT, tree, folder=ROOT)
    run("cmake", "--preset", "release", folder=tree)
    build(tree)
    all_found = []
    for number, bug in enumerate(bugs):
        print(f"{number + 1} of {len(bugs)}: {bug.name}", file=sys.stderr, flush=True)
        plant(bug, tree)
        found = look(build(tree), bug, seeds, jobs)
        run("git", "checkout", "--quiet", "--", bug.file, folder=tree)
        all_found.append(found)
        said = f"seed {found.seed}: {found.how}" if found.seed is not None else f"not within {seeds} seeds"
        print(f"{bug.name}: {said} ({found.seconds:g} s)", flush=True)
    return all_found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", action="append", choices=[bug.name for bug in BUGS])
    parser.add_argument("--seeds", metavar="N", type=int, default=1000)
    parser.add_argument("--jobs", metavar="N", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", metavar="FILE", type=Path)
    parser.add_argument("--list", action="store_true", help="say what each bug is, and end")
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if not options.only or bug.name in options.only]
    if options.list:
        for bug in bugs:
            print(f"{bug.name}: {bug.what} ({bug.file})")
        return 0
    try:
        with tempfile.TemporaryDirectory(prefix="lacuna-planted-") as folder:
            found = look_for_all(bugs, Path(folder) / "tree", options.seeds, options.jobs)
    except PlantError as e:
        print(f"ERROR: {e}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps({"seeds": options.seeds, "bugs": [asdict(one) for one in found]}, indent=1))
    return 1 if any(one.seed is None for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
