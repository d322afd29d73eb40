"""Ranks of a test as processes of their own, which share its memory as it was when they began."""

from __future__ import annotations

import multiprocessing
import secrets
import traceback
from collections.abc import Callable
from typing import Any

from conftest import PATIENCE

import lacuna

Program = Callable[[lacuna.Communicator], None]


def _run(program: Program, name: str, ranks: int, rank: int, pipe: Any) -> None:
    try:
        with lacuna.connect(name, ranks, rank=rank, timeout=PATIENCE) as comm:
            program(comm)
        pipe.send(None)
    except BaseException:
        pipe.send(traceback.format_exc())


def run_ranks(program: Program, ranks: int) -> None:
    """Runs the program in so many processes; fails with what any of them raised."""
    context = multiprocessing.get_context("fork")
    name = f"forked-test-{secrets.token_hex(8)}"
    children = []
    for rank in range(ranks):
        ours, theirs = context.Pipe()
        child = context.Process(target=_run, args=(program, name, ranks, rank, theirs))
        child.start()
        children.append((child, ours))
    wrong = []
    for rank, (child, pipe) in enumerate(children):
        said = pipe.recv() if pipe.poll(PATIENCE) else f"no answer within {PATIENCE:.0f} s"
        child.kill()  # it has ended, or never will
        child.join()
        if said is not None:
            wrong.append(f"rank {rank}: {said}")
    assert not wrong, "\n".join(wrong)
