"""The tier of a test, and parts of a run: a plugin that pyproject.toml loads.

A mark says which of `make check`, `make test`, `.ci/run` and `make test-all` is the first to run a test: check, test,
gate or all. A test without one is of tier test. LACUNA_TIER (check, test, gate, all; all by default)
is what a run takes; LACUNA_SHARD=K/N is the K-th of N parts of it.

Tests of a file run in one process, in order: a fixture of a module is made once. Those with a parameter `mpi` run in
one process, too: two MPI jobs at a time hinder one another. `xdist_group` says otherwise.
"""

from __future__ import annotations

import os
import zlib

import pytest

TIERS = ("check", "test", "gate", "all")


def pytest_configure(config: pytest.Config) -> None:
    for tier in TIERS:
        config.addinivalue_line("markers", f"{tier}: a test of tier {tier} (tests/python/tiers.py)")


def tier_of(item: pytest.Item) -> int:
    """The last of its marks counts."""
    marked = [number for number, tier in enumerate(TIERS) if item.get_closest_marker(tier)]
    return max(marked, default=TIERS.index("test"))


def _kept(item: pytest.Item, most: int, part: int, parts: int) -> bool:
    return tier_of(item) <= most and zlib.crc32(item.nodeid.encode()) % parts == part - 1


def _group(item: pytest.Item) -> str:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return "mpi" if "mpi" in parameters else item.path.stem


def _name_with_group(item: pytest.Item) -> None:
    """Groups are told apart by the endings of tests' names. xdist 3.8 sets them in a way that pytest 9.2 ignores."""
    (group,) = item.get_closest_marker("xdist_group").args
    if hasattr(item, "_id"):
        item._id = type(item._id).parse(f"{item.nodeid}@{group}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = os.environ.get("LACUNA_TIER") or "all"
    if wanted not in TIERS:
        raise pytest.UsageError(f"LACUNA_TIER is '{wanted}'; it may be one of {', '.join(TIERS)}")
    part, parts = map(int, (os.environ.get("LACUNA_SHARD") or "1/1").split("/"))
    kept = [item for item in items if _kept(item, TIERS.index(wanted), part, parts)]
    if left := [item for item in items if item not in set(kept)]:
        config.hook.pytest_deselected(items=left)
    items[:] = kept
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(_group(item)))
        if config.getoption("loadgroup", False):
            _name_with_group(item)
