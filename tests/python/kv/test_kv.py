"""lacuna.kv against a model in NumPy: every format to every other one, and what cannot be."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from kv_model import Kept, Model, drawn_cache, drawn_model

from lacuna import kv
from lacuna.kv import FORMATS, Agreement, Cache
from lacuna.resharding import Mesh, PartitionSpec, Sharding

pytestmark = pytest.mark.check
LATENT = [name for name in FORMATS if "mla" in name]
OTHERS = [*(name for name in FORMATS if "mla" not in name), "block kv head token dim", "block head token kv dim"]


def overlap(a: range, b: range) -> range:
    return range(max(a.start, b.start), min(a.stop, b.stop))


def check(model: Model, source: Kept, target: Kept, first: int, tokens: int) -> None:
    before = target.copy()
    common = overlap(source.layers, target.layers), overlap(source.heads, target.heads)
    if not all(common):
        with pytest.raises(ValueError, match="in common"):
            kv.copy(target.cache, target.table, source.cache, source.table, tokens, first=first)
        return
    kv.copy(target.cache, target.table, source.cache, source.table, tokens, first=first)
    for at in target.every(model, range(first, first + tokens)):
        if at[0] in common[0] and at[3] in common[1]:
            place = target.places(*at)
            assert np.array_equal(place, model.numbers[at]), at
            place[:] = 0
    assert all(np.array_equal(a, b) for a, b in zip(before, target.copy(), strict=True)), "another number was written"


@pytest.mark.parametrize("format_name", [*OTHERS, *LATENT])
def test_every_format_to_every_other_one(format_name: str) -> None:
    rng = random.Random(format_name)
    latent = format_name in LATENT
    for other in LATENT if latent else OTHERS:
        for _ in range(5):
            model = drawn_model(rng, latent=latent)
            sizes = [rng.choice([1, 4, 6, 16]) for _ in range(2)]
            source = drawn_cache(rng, model, format_name, block_size=sizes[0])
            target = drawn_cache(rng, model, other, block_size=sizes[1])
            source.fill(model)
            first = rng.choice([0, 0, rng.randrange(model.tokens)])
            check(model, source, target, first, rng.randint(1, model.tokens - first))


@pytest.mark.parametrize(
    ("source", "target", "runs"),
    [
        (("vllm:flash_attn", 16), ("vllm:flash_attn", 16), 1),  # a block of a plane
        (("vllm:flash_attn", 16), ("vllm:flash_attn", 64), 1),
        (("block kv head token dim", 16), ("block kv head token dim", 16), 1),  # the whole block
        (("block kv head token dim", 16), ("block kv head token dim", 64), 8),  # 16 tokens of a head
        (("vllm:flash_attn", 16), ("block kv head token dim", 16), 128),  # a head of a token
        (("sglang:page_first", 16), ("sglang:page_first", 16), 1),  # a page of all layers
    ],
)
def test_the_order_leaves_as_few_pieces_as_can_be(source: tuple[str, int], target: tuple[str, int], runs: int) -> None:
    """Of blocks of 16 tokens and 8 heads."""
    made = []
    for format_name, size in (source, target):
        names = FORMATS.get(format_name, format_name).split()
        sizes = {"kv": 2, "layer": 3, "block": 1024 // size, "token": size, "slot": 1024, "head": 8, "dim": 64}
        array = np.zeros([sizes[name] for name in names], np.float16)
        made.append(Cache(array if "layer" in names else [array], format_name, block_size=size))
    agreed = Agreement(made[0].form, made[1].form)
    tables = [np.arange(1024 // c.block_size)[::-2].copy() for c in made]
    out, into = (agreed.pieces(c, t, 512)[0].layout for c, t in zip(made, tables, strict=True))
    blocks = 512 // 16 * (1 if "block kv" in source[0] and runs == 1 else out.size // (512 * 8 * 128))
    blocks = blocks if source[0] != "sglang:page_first" else 2 * 512 // 16
    assert max(out.run_count, into.run_count) == blocks * runs


def test_one_more_request_costs_no_walk_over_tokens() -> None:
    cache = Cache([np.zeros((2, 4000, 16, 8, 64), np.float16) for _ in range(4)], "vllm:flash_attn")
    theirs = Cache([np.zeros((2, 1000, 64, 2, 64), np.float16) for _ in range(4)], "vllm:flash_attn", first_head=4)
    agreed = Agreement(cache.form, theirs.form)
    assert agreed.messages() == 4
    table = np.random.default_rng(1).permutation(4000).astype(np.int32)
    pieces = agreed.pieces(cache, table[:625], 10_000)
    assert len({id(piece.layout) for piece in pieces}) == 1
    assert pieces[0].layout.run_count == 2 * 10_000
    assert len(pieces[0].layout.wire()) < 5 * 625


def test_routes_of_unequal_parallelism() -> None:
    """Two stages of four ranks with two of eight heads each, to two ranks with all layers and four heads each."""
    source = Sharding(Mesh((2, 4), ("pp", "tp")), PartitionSpec("pp", "tp"))
    target = Sharding(Mesh((2,), ("tp",), [100, 101]), PartitionSpec(None, "tp"))
    found = kv.routes(source, target, 32, 8)
    assert len(found) == 8
    assert (3, 101, (0, 16), (6, 8)) in found
    replicas = Sharding(Mesh((8,), ("tp",)).split("tp", kv=2, copy=4), PartitionSpec(None, "kv"))
    shared = kv.routes(replicas, target, 32, 2)
    assert [(r.target, r.heads) for r in shared] == [(100, (0, 1)), (101, (1, 2))]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Cache([np.zeros(3)], "vllm:nothing"), "is no format and no dimension"),
        (lambda: Cache([np.zeros(3)], "block dim"), "blocks and tokens, or slots"),
        (lambda: Cache([np.zeros((3, 4))], "dim slot"), "the last dimension is `dim`"),
        (lambda: Cache([np.zeros((3, 4))], "sglang:mha", block_size=1), "an array of 2 dimensions"),
        (lambda: Cache([np.zeros((6, 2, 4))], "sglang:mha", block_size=4), "divides them; it is 4"),
        (lambda: Cache([np.zeros((6, 2, 4)), np.zeros((5, 2, 4))], "sglang:mha", block_size=1), "different shapes"),
        (lambda: Cache([np.zeros((6, 2, 8))[..., ::2]], "sglang:mha", block_size=1), "side by side"),
        (lambda: Cache([np.zeros((3, 6, 4, 2, 8))], "vllm:flash_attn"), "it is 2, of K and V"),
        (lambda: Cache([np.zeros((2, 6, 4, 2, 8))], "vllm:flash_attn", block_size=8), "by their shape"),
        (lambda: Cache([], "vllm:mla"), "0 arrays"),
        (lambda: Cache([np.zeros((2, 6, 4, 2, 8))], "vllm:flash_attn", values=[]), "0 arrays"),
        (lambda: _pieces(table=[0, 1], tokens=9), "tokens 0 to 9 in a table of 2 blocks of 4 tokens"),
        (lambda: _pieces(table=[0, 1], tokens=0), "at least one is needed"),
        (lambda: _copy(table=[0, 6]), "block 6 of a cache of 6 blocks"),
        (lambda: kv.Form.from_json(b'{"order": ["block"]}'), "missing required field"),
        (lambda: kv.Form(("block",), 1, (0, 1), (0, 1), (8,), ()), "no form of a cache"),
    ],
)
def test_what_cannot_be_says_why(wrong: object, says: str) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match=says):
        wrong()


def _small() -> Cache:
    return Cache([np.zeros((6, 4, 2, 8))], "block token head dim")


def _pieces(table: list[int], tokens: int) -> object:
    return Agreement(_small().form, _small().form).pieces(_small(), table, tokens)


def _copy(table: list[int]) -> None:
    kv.copy(_small(), table, _small(), [0, 1], 8)


def test_k_and_v_of_other_strides() -> None:
    keys = np.arange(2 * 6 * 4 * 3 * 8, dtype=np.int16).reshape(2, 6, 4, 3, 8)
    values = np.zeros((2, 6, 8, 3, 8), np.int16)[:, :, ::2]
    values[:] = -keys
    source = Cache(list(keys), "block token head dim", values=list(values))
    into = np.zeros((2, 2, 6, 4, 3, 8), np.int16)
    target = Cache(list(into[0]), "block token head dim", values=list(into[1]))
    kv.copy(target, [5, 0, 2], source, [1, 4, 3], 12)
    for own, theirs in ((5, 1), (0, 4), (2, 3)):
        assert np.array_equal(into[0, :, own], keys[:, theirs])
        assert np.array_equal(into[1, :, own], -keys[:, theirs])


@pytest.mark.parametrize("table", [[0, 4], [-1, 2], np.array([1, 2, 4], np.int32), np.array([1, -1, 3])])
@pytest.mark.parametrize("layers", [None, (1, 2)])
def test_blocks_beyond_the_cache_touch_nothing(table: Any, layers: tuple[int, int] | None) -> None:
    slots = np.ones((2, 3, 16, 2, 8), np.int8)
    whole = Cache(slots, "sglang:layer_first", block_size=4)
    other = Cache(np.zeros_like(slots), "sglang:layer_first", block_size=4)
    for target, source, tables in ((whole, other, (table, [0, 1, 2])), (other, whole, ([0, 1, 2], table))):
        with pytest.raises(ValueError, match="of a cache of 4 blocks"):
            kv.copy(target, tables[0], source, tables[1], 4 * len(table), layers=layers)
    assert slots.all()
