"""One dimension of a tensor: which of its elements a shard has, and what two shards have in common. What is
here grows with the pattern by which elements are dealt out, not with their number: of two cyclic patterns with the
blocks of both within a common period, or with those that there are, if these are fewer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import lcm
from typing import NamedTuple

_FEW = 4
"""Spans that are all looked at: fewer than a search takes."""


class Span(NamedTuple):
    """`times` intervals of `length` elements, `stride` apart in the tensor, `step` apart in the shard."""

    start: int
    length: int
    local: int
    stride: int = 0
    step: int = 0
    times: int = 1


class Term(NamedTuple):
    """What two shards have in common: `times` intervals of `length` elements. `source` and `target` are where the
    first one begins in either shard, the steps lead to the next."""

    source: int
    target: int
    length: int
    times: int = 1
    source_step: int = 0
    target_step: int = 0

    @property
    def elements(self) -> int:
        return self.length * self.times


def cyclic(elements: int, block: int, shards: int, shard: int, start: int = 0, local: int = 0) -> Iterator[Span]:
    """Blocks `shard`, `shard + shards` and so on of elements from `start` on; the last block may be short."""
    whole, rest = divmod(elements, block)
    count = max(0, -(-(whole - shard) // shards))
    if count:
        yield Span(start + shard * block, block, local, shards * block, block, count)
    if rest and whole % shards == shard:
        yield Span(start + whole * block, rest, local + count * block)


def elements(spans: Sequence[Span]) -> int:
    """How many elements a shard has."""
    return sum(span.length * span.times for span in spans)


def common(source: Sequence[Span], target: Sequence[Span]) -> tuple[Term, ...]:
    """The elements of both shards, each once, in the order in which the source has them, mostly."""
    found = [term for a in source for b in target for term in _common(a, b)]
    return tuple(sorted(found))


def _common(a: Span, b: Span) -> Iterator[Term]:
    if a.times > 1 and b.times > 1:
        period = lcm(a.stride, b.stride)
    else:
        period = a.stride if a.times > 1 else b.stride if b.times > 1 else a.length + b.length
    others = list(_every(b, period))
    for one in _every(a, period):
        for i in _near(one, others, b.stride, period):
            yield from _of_one_period(one, others[i], period)


def _near(one: Span, others: Sequence[Span], step: int, period: int) -> Sequence[int]:
    """Which of spans that begin `step` apart, within one period, may meet `one`. All, if they are few; else as many as
    do meet it, and two."""
    if len(others) <= _FEW:
        return range(len(others))
    low = one.start - others[0].start - others[0].length + 1  # of a start behind the first one's, in any period
    width = one.length + others[0].length - 1
    found: set[int] = set()
    for turn in range(-(-(low % period + width) // period)):
        begin = low % period - turn * period
        found.update(range(max(0, -(-begin // step)), min(len(others), (begin + width - 1) // step + 1)))
    return sorted(found)


def _every(span: Span, period: int) -> Iterator[Span]:
    """The same intervals as spans of one period, each. A single interval that is longer is cut into periods."""
    if span.times == 1:
        whole, rest = divmod(span.length, period)
        if whole:
            yield Span(span.start, period, span.local, period, period, whole)
        if rest:
            yield Span(span.start + whole * period, rest, span.local + whole * period, period, period, 1)
        return
    turns = period // span.stride
    for i in range(min(turns, span.times)):
        count = -(-(span.times - i) // turns)
        yield Span(
            span.start + i * span.stride, span.length, span.local + i * span.step, period, turns * span.step, count
        )


def _of_one_period(a: Span, b: Span, period: int) -> Iterator[Term]:
    """Interval i of `a` meets interval i + m of `b` for two values of m at most, since neither is longer than a
    period."""
    apart = b.start - a.start
    least = -((apart + b.length - 1) // period)  # the least m with apart + m * period > -b.length
    for m in range(least, least + 2):
        x = apart + m * period
        low, high = max(0, x), min(a.length, x + b.length)
        first, last = max(0, -m), min(a.times, b.times - m)
        if low >= high or first >= last:
            continue
        term = Term(
            a.local + first * a.step + low,
            b.local + (first + m) * b.step + low - x,
            high - low,
            last - first,
            a.step,
            b.step,
        )
        if term.times == 1 or term.length == term.source_step == term.target_step:
            term = Term(term.source, term.target, term.elements)
        yield term
