"""Random pairs of layouts: what the choice is fitted on, and judged by."""

from __future__ import annotations

import pytest

from lacuna.bench.validation.validation import PAIRS, SEED
from lacuna.guide.pairs import Pair, random_pairs
from lacuna.guide.plan import FULL_PAIRS, PAIRS_SEED, pair_cells

pytestmark = pytest.mark.check

KIB = 1 << 10


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return random_pairs(PAIRS, SEED)


def wires(pairs: list[Pair]) -> list[tuple[bytes, bytes]]:
    return [(p.send.wire(), p.receive.wire()) for p in pairs]


def test_the_same_seed_gives_the_same_pairs() -> None:
    assert random_pairs(20, 3) == random_pairs(20, 3)
    assert wires(random_pairs(20, 3)) == wires(random_pairs(20, 3))


def test_fewer_are_the_first_of_more() -> None:
    assert wires(random_pairs(5, 3)) == wires(random_pairs(20, 3)[:5])


def test_another_seed_gives_other_pairs(pairs: list[Pair]) -> None:
    assert not set(wires(pairs)) & set(wires(random_pairs(PAIRS, SEED + 1)))


def test_the_choice_is_judged_on_pairs_that_no_fit_has_seen(pairs: list[Pair]) -> None:
    assert not set(wires(pairs)) & set(wires(random_pairs(FULL_PAIRS, PAIRS_SEED)))


def test_both_sides_have_as_many_bytes(pairs: list[Pair]) -> None:
    assert all(p.send.size == p.receive.size for p in pairs)


def test_no_destination_overlaps_itself(pairs: list[Pair]) -> None:
    assert not any(p.receive.overlaps for p in pairs)


def test_no_byte_lies_before_the_base(pairs: list[Pair]) -> None:
    assert all(min(p.send.true_lower_bound, p.receive.true_lower_bound) >= 0 for p in pairs)


def test_payloads_are_of_all_orders_of_magnitude(pairs: list[Pair]) -> None:
    sizes = [p.send.size for p in pairs]
    assert min(sizes) >= 256
    assert max(sizes) <= 1 << 20
    for least in (256, 1 * KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB):
        assert any(least <= size < 4 * least for size in sizes)


def test_blocks_are_of_8_bytes_to_64_kib(pairs: list[Pair]) -> None:
    blocks = [
        layout.runs()[0][1]
        for p in pairs
        for layout, word in zip((p.send, p.receive), p.words.split(" to "), strict=True)
        if word.split()[0] in ("regular", "face")
    ]
    assert min(blocks) >= 8
    assert max(blocks) <= 64 * KIB
    assert min(blocks) < 32
    assert max(blocks) > 8 * KIB


def test_every_kind_is_there_on_either_side(pairs: list[Pair]) -> None:
    kinds = {"contiguous", "regular", "irregular", "paged", "face", "structs"}
    for side in (0, 1):
        assert {p.words.split(" to ")[side].split()[0] for p in pairs} == kinds


def test_most_are_asymmetric_and_some_are_not(pairs: list[Pair]) -> None:
    same = sum(p.send == p.receive for p in pairs)
    assert 0.1 * len(pairs) < same < 0.4 * len(pairs)


def test_two_contiguous_sides_are_no_question(pairs: list[Pair]) -> None:
    assert any(p.send.run_count == 1 for p in pairs)
    assert any(p.receive.run_count == 1 for p in pairs)
    assert not any(p.send.run_count == p.receive.run_count == 1 for p in pairs)


def test_names_are_unique(pairs: list[Pair]) -> None:
    assert len({p.name for p in pairs}) == len(pairs)


def test_a_cell_of_a_pair_holds_both_layouts() -> None:
    for cell, pair in zip(pair_cells(3), random_pairs(3, PAIRS_SEED), strict=True):
        assert cell.subject.experiment == "pairs"
        assert cell.subject.payload_bytes == pair.send.size
        assert cell.spec["send"] == pair.send.wire().hex()
        assert cell.spec["receive"] == pair.receive.wire().hex()
        assert cell.label == f"{pair.name}, warm"
