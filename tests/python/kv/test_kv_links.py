"""lacuna.kv between processes: requests of several ranks, in any order, to caches of other formats."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from forked_ranks import run_ranks
from kv_model import drawn_cache, drawn_model

import lacuna
from lacuna import kv
from lacuna.resharding import Mesh, PartitionSpec, Sharding


@pytest.mark.parametrize("seed", range(4))
def test_requests_arrive_where_they_belong(seed: int) -> None:
    def program(ranks: lacuna.Communicator) -> None:
        rng = random.Random(seed)  # the same draws on both ranks
        formats = rng.sample(["vllm:flash_attn", "vllm:flashinfer", "sglang:mha", "sglang:page_first"], 2)
        model = drawn_model(rng, latent=False)
        kept = [drawn_cache(rng, model, name, block_size=rng.choice([4, 16])) for name in formats]
        own = kept[ranks.rank]
        common = [max(a.start, b.start) for a, b in ((kept[0].layers, kept[1].layers), (kept[0].heads, kept[1].heads))]
        stops = [min(a.stop, b.stop) for a, b in ((kept[0].layers, kept[1].layers), (kept[0].heads, kept[1].heads))]
        if any(a >= b for a, b in zip(common, stops, strict=True)):
            with pytest.raises(ValueError, match="in common"):
                kv.Link(ranks, 1 - ranks.rank, own.cache)
            return
        link = kv.Link(ranks, 1 - ranks.rank, own.cache)
        cuts = sorted({0, model.tokens, *(rng.randint(0, model.tokens) for _ in range(5))})
        requests = list(itertools.pairwise(cuts))
        if ranks.rank == 0:
            own.fill(model)
            for number, (first, end) in enumerate(requests):
                link.send(number, own.table, end - first, first)
            for number in range(len(requests)):
                link.wait(number)
        else:
            for number, (first, end) in reversed(list(enumerate(requests))):
                link.receive(number, own.table, end - first, first)
            found: list[int] = []
            while link.under_way():
                found += link.completed()
            assert sorted(found) == list(range(len(requests)))
            for at in own.every(model, range(model.tokens)):
                moved = common[0] <= at[0] < stops[0] and common[1] <= at[3] < stops[1]
                assert np.array_equal(own.places(*at), model.numbers[at] if moved else np.zeros(4)), at

    run_ranks(program, 2)


def test_four_ranks_of_two_heads_to_two_of_four() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        source = Sharding(Mesh((4,), ("tp",)), PartitionSpec(None, "tp"))
        target = Sharding(Mesh((2,), ("tp",), [4, 5]), PartitionSpec(None, "tp"))
        every = kv.routes(source, target, 3, 8)
        whole = np.random.default_rng(3).integers(0, 99, (3, 2, 20, 4, 8, 16), np.int8)  # blocks of 4 tokens
        if ranks.rank < 4:
            heads = slice(2 * ranks.rank, 2 * ranks.rank + 2)
            layers = [np.ascontiguousarray(layer[..., heads, :]) for layer in whole]
            cache = kv.Cache(layers, "vllm:flash_attn", first_head=heads.start)
        else:
            layers = [np.zeros((2, 5, 16, 4, 16), np.int8) for _ in range(3)]
            cache = kv.Cache(layers, "vllm:flash_attn", first_head=4 * (ranks.rank - 4))
        mine = [route for route in every if ranks.rank in (route.source, route.target)]
        links = [
            kv.Link(ranks, r.target if ranks.rank == r.source else r.source, cache, layers=r.layers, heads=r.heads)
            for r in mine
        ]
        for link in links:
            if ranks.rank < 4:
                link.send(7, np.arange(20)[::-1], 80)
            else:
                link.receive(7, np.array([3, 1, 0, 4, 2], np.int32), 80)
        for link in links:
            link.wait(7)
        if ranks.rank >= 4:
            tokens = whole[:, :, ::-1].reshape(3, 2, 80, 8, 16)[..., 4 * (ranks.rank - 4) :, :][..., :4, :]
            found = np.stack(layers)[:, :, [3, 1, 0, 4, 2]].reshape(3, 2, 80, 4, 16)
            assert np.array_equal(found, tokens)

    run_ranks(program, 6)


def test_requests_that_cannot_be() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        cache = kv.Cache([np.zeros((6, 4, 2, 8))], "block token head dim")
        link = kv.Link(ranks, 1 - ranks.rank, cache)
        begin = link.send if ranks.rank == 0 else link.receive
        begin(3, [1, 2], 8)
        with pytest.raises(ValueError, match="request 3 is under way"):
            begin(3, [1, 2], 8)
        with pytest.raises(ValueError, match="tokens 0 to 9"):
            begin(4, [1, 2], 9)
        with pytest.raises(ValueError, match="no number from 0"):
            begin(-1, [1, 2], 8)
        link.wait(3)
        with pytest.raises(KeyError):
            link.wait(3)
        assert link.under_way() == []

    run_ranks(program, 2)


def test_a_request_that_cannot_be_is_not_under_way() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        cache = kv.Cache([np.zeros((2, 4, 4, 2, 8), np.int8)], "vllm:flash_attn")
        link = kv.Link(ranks, 1 - ranks.rank, cache)
        begin = link.send if ranks.rank == 0 else link.receive
        with pytest.raises(ValueError, match="of a cache of 4 blocks"):
            begin(5, [1, 9], 8)
        with pytest.raises(ValueError, match=f"no number from 0 to {kv.REQUESTS - 1}"):
            begin(kv.REQUESTS, [1], 4)
        assert link.under_way() == []
        assert link.completed() == []
        begin(5, [1, 3], 8)
        link.wait(5)

    run_ranks(program, 2)


def test_links_between_two_ranks_share_no_tags() -> None:
    """The ends begin the same requests of two links in different orders."""

    def program(ranks: lacuna.Communicator) -> None:
        layers = [np.zeros((2, 4, 4, 2, 8), np.int8) for _ in range(2)]
        cache = kv.Cache(layers, "vllm:flash_attn")
        links = [kv.Link(ranks, 1 - ranks.rank, cache, layers=(at, at + 1)) for at in range(2)]
        if ranks.rank == 0:
            for at, layer in enumerate(layers):
                layer[:] = 1 + at
            for link in links:
                link.send(5, [0, 1, 2, 3], 16)
        else:
            for link in reversed(links):
                link.receive(5, [0, 1, 2, 3], 16)
        for link in links:
            link.wait(5)
        assert [int(layer[0, 0, 0, 0, 0]) for layer in layers] == [1, 2]

    run_ranks(program, 2)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"layers": [(0, 1), (0, 2)]}, r"layers: \(0, 1\) here, \(0, 2\) there"),
        ({"heads": [(0, 1), None]}, r"heads: \(0, 1\) here, None there"),
        ({"requests": [8, 9]}, "requests: 8 here, 9 there"),
    ],
)
def test_ends_that_were_told_different_things_say_so(told: dict[str, list[object]], says: str) -> None:
    def program(ranks: lacuna.Communicator) -> None:
        mine: dict[str, object] = {name: both[ranks.rank] for name, both in told.items()}
        array = np.zeros((2, 4, 4, 2, 8), np.float16)
        cache = kv.Cache([array, array], "vllm:flash_attn")
        with pytest.raises(ValueError, match=says if ranks.rank == 0 else "were not told the same"):
            kv.Link(ranks, 1 - ranks.rank, cache, **mine)  # type: ignore[arg-type]
        link = kv.Link(ranks, 1 - ranks.rank, cache)  # the ranks go on
        (link.send if ranks.rank == 0 else link.receive)(0, [1], 4)
        link.wait(0)

    run_ranks(program, 2)


def test_ends_whose_numbers_differ_say_so() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        kind = np.float16 if ranks.rank == 0 else np.int16
        cache = kv.Cache([np.zeros((6, 4, 2, 8), kind)], "block token head dim")
        with pytest.raises(ValueError, match=r"dtypes: .*Cache\(dtype=\)"):
            kv.Link(ranks, 1 - ranks.rank, cache)
        named = kv.Cache([np.zeros((6, 4, 2, 8), kind)], "block token head dim", dtype="float16")
        kv.Link(ranks, 1 - ranks.rank, named)

    run_ranks(program, 2)


def test_tags_that_are_used_up_are_an_error() -> None:
    def program(ranks: lacuna.Communicator) -> None:
        cache = kv.Cache([np.zeros((6, 4, 2, 8))], "block token head dim")
        kv.Link(ranks, 1 - ranks.rank, cache, requests=2**31 - 10)
        with pytest.raises(ValueError, match="tags from 2147483639 to 2147483647 are left"):
            kv.Link(ranks, 1 - ranks.rank, cache)
        last = kv.Link(ranks, 1 - ranks.rank, cache, requests=9)
        (last.send if ranks.rank == 0 else last.receive)(8, [0], 4)
        last.wait(8)

    run_ranks(program, 2)
