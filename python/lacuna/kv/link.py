"""Hand-over of requests between two processes, by Lacuna's messages; and within one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from lacuna import arrays
from lacuna.kv.agreement import Agreement
from lacuna.kv.cache import Cache, Form
from lacuna.messages import Communicator, Request, wait_all

_HELLO_TAG = 0
"""Of the messages by which two ends begin. Those of requests have tags from 1 on."""
_MOST_HELLO = 4096
"""Bytes of what an end says then, which is filled up to them; it has some 300."""
_MOST_TAG = 2**31 - 1
REQUESTS = 1 << 26
"""Numbers that a link has for requests, unless it is told otherwise: room for 31 links between two ranks."""

_next_tags: WeakKeyDictionary[Communicator, dict[int, int]] = WeakKeyDictionary()
"""Of each peer the first tag that no link to it has."""


class Hello(msgspec.Struct, frozen=True):
    """What an end says of itself, which has to fit what the other end says."""

    form: Form
    layers: tuple[int, int] | None
    heads: tuple[int, int] | None
    requests: int
    first_tag: int
    """That is free at this end."""

    def compare(self, theirs: Hello, peer: int) -> None:
        """Raises ValueError: what both ends have to be told alike was not."""
        both: list[tuple[str, object, object]] = [
            ("layers", self.layers, theirs.layers),
            ("heads", self.heads, theirs.heads),
            ("requests", self.requests, theirs.requests),
        ]
        if self.form.dtypes and theirs.form.dtypes:
            both.append(("dtypes", self.form.dtypes, theirs.form.dtypes))
        wrong = [f"{name}: {own} here, {other} there" for name, own, other in both if own != other]
        if wrong:
            raise ValueError(
                f"the two ends of the link to rank {peer} were not told the same: {'; '.join(wrong)}. "
                "Both ends make their links to one another in one order, and are told alike what is moved; "
                "Cache(dtype=) says what numbers are that an array holds as others"
            )


class Link:
    """One rank's cache, and the cache of one peer, which may be of any other format.

        link = Link(ranks, peer, cache)          both ends; each tells the other its form
        link.send(request, table, tokens)        one end: returns before anything has moved
        link.receive(request, table, tokens)     the other end, with its own table
        link.wait(request)                       or done(request), or completed()

    A request is a number from 0 to below `requests`, which both ends give alike. A link has tags of its own for them,
    so there may be several between two ranks. Only the own table is needed for a request, and only the form of the
    peer's cache: block numbers are never told.
    """

    def __init__(
        self,
        ranks: Communicator,
        peer: int,
        cache: Cache,
        *,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        requests: int = REQUESTS,
    ) -> None:
        """Both ends make it, and several links to one another in one order. `layers` and `heads`: what is moved by this
        link; all that both have if left out. These, `requests` and the caches' dtypes are compared with what the other
        end was told. Raises ValueError if they differ, if nothing is moved, or if there are no tags left, and
        ConnectionError if the peer is lost."""
        self._ranks, self._peer, self.cache = ranks, peer, cache
        theirs = self._meet(_pair(layers), _pair(heads), int(requests))
        self.sends = Agreement(cache.form, theirs, layers=layers, heads=heads)
        """How requests are sent."""
        self.receives = Agreement(theirs, cache.form, layers=layers, heads=heads)
        """How they are received."""
        self._under_way: dict[int, list[Request]] = {}
        self._failed: list[Request] = []  # begun, of requests that could not be: their memory is in use

    def _meet(self, layers: tuple[int, int] | None, heads: tuple[int, int] | None, requests: int) -> Form:
        """What the other end has. Both ends go on from the same numbers, also where they do not fit."""
        free = _next_tags.setdefault(self._ranks, {})
        mine = Hello(self.cache.form, layers, heads, requests, free.get(self._peer, _HELLO_TAG + 1))
        heard = bytearray(_MOST_HELLO)
        told = msgspec.json.encode(mine).ljust(_MOST_HELLO)
        wait_all([self._ranks.irecv(heard, self._peer, _HELLO_TAG), self._ranks.isend(told, self._peer, _HELLO_TAG)])
        theirs = msgspec.json.decode(bytes(heard).rstrip(), type=Hello)
        self._first_tag, self._requests = max(mine.first_tag, theirs.first_tag), requests
        mine.compare(theirs, self._peer)
        if requests < 1 or self._first_tag < 1 or self._first_tag + requests - 1 > _MOST_TAG:
            raise ValueError(
                f"a link to rank {self._peer} for {requests} numbers: tags from {self._first_tag} to {_MOST_TAG} are "
                "left. Give Link fewer requests, at both ends"
            )
        free[self._peer] = self._first_tag + requests
        return theirs.form

    def send(self, request: int, table: Any, tokens: int, first: int = 0) -> None:
        """Begins to send tokens `first` to `first + tokens` of a request, whose block i is block table[i] of the cache.

        The table is an array of integers, which is read during the call, or a sequence. The blocks must not change
        until the request is done. Raises ValueError: a request that is under way, tokens beyond the table, blocks
        beyond the cache."""
        self._begin(self._ranks.isend, request, self.sends, table, tokens, first)

    def receive(self, request: int, table: Any, tokens: int, first: int = 0) -> None:
        """Begins to receive them into the blocks of the own table; as `send`. The blocks must not be read before."""
        self._begin(self._ranks.irecv, request, self.receives, table, tokens, first)

    def done(self, request: int) -> bool:
        """Moves messages on; whether all of a request has moved. What went wrong, `wait` says. Raises KeyError for a
        request that is not under way."""
        return all(message.test() for message in self._under_way[request])

    def wait(self, request: int) -> None:
        """Moves messages on until a request is done. Raises KeyError as `done`, else as `Request.wait`."""
        wait_all(self._under_way.pop(request))

    def completed(self) -> list[int]:
        """The requests that are done since it was asked last, in the order in which they were begun. Raises as
        `wait`."""
        found = [request for request in self._under_way if self.done(request)]
        for request in found:
            self.wait(request)
        return found

    def under_way(self) -> list[int]:
        """The requests that are not known to be done."""
        return list(self._under_way)

    def _begin(
        self, begin: Callable[..., Request], request: int, agreed: Agreement, table: Any, tokens: int, first: int
    ) -> None:
        if not 0 <= request < self._requests or request in self._under_way:
            raise ValueError(f"request {request} is under way already, or no number from 0 to {self._requests - 1}")
        pieces = agreed.pieces(self.cache, table, tokens, first)
        begun: list[Request] = []
        try:
            for array, layout, offset in pieces:
                begun.append(begin(array, self._peer, self._first_tag + request, layout=layout, offset=offset))
        except BaseException:
            self._failed += begun
            raise
        self._under_way[request] = begun


def _pair(given: Sequence[int] | None) -> tuple[int, int] | None:
    return None if given is None else (int(given[0]), int(given[1]))


def copy(
    target: Cache,
    target_table: Any,
    source: Cache,
    source_table: Any,
    tokens: int,
    *,
    first: int = 0,
    threads: int = 1,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> None:
    """Copies a request's tokens from one cache into another, of any other format, in this process. Raises ValueError
    as `Link.send` and `Agreement` do, and if some block is in both."""
    agreed = Agreement(source.form, target.form, layers=layers, heads=heads)
    written = agreed.pieces(target, target_table, tokens, first)
    read = agreed.pieces(source, source_table, tokens, first)
    for into, out in zip(written, read, strict=True):
        arrays.copy(
            into.array,
            out.array,
            target_layout=into.layout,
            target_offset=into.offset,
            source_layout=out.layout,
            source_offset=out.offset,
            threads=threads,
        )
