"""Hand-over of requests between two processes, by Lacuna's messages; and within one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lacuna import arrays
from lacuna.kv.agreement import Agreement
from lacuna.kv.cache import Cache, Form
from lacuna.messages import Communicator, Request, wait_all

_FORM_TAG = 0
"""Of the messages by which two ends tell one another their forms. Those of request r have r + 1."""
_MOST_FORM = 4096
"""Bytes of a form as text, which is filled up to them; one has some 200."""
_MOST_REQUEST = 2**31 - 2
"""Their tags are numbers of 31 bits."""


class Link:
    """One rank's cache, and the cache of one peer, which may be of any other format.

        link = Link(ranks, peer, cache)          both ends; each tells the other its form
        link.send(request, table, tokens)        one end: returns before anything has moved
        link.receive(request, table, tokens)     the other end, with its own table
        link.wait(request)                       or done(request), or completed()

    A request is a number from 0 on, which both ends give alike. Its messages have that number and 1 as their tag. Only
    the own table is needed for a request, and only the form of the peer's cache: block numbers are never told.
    """

    def __init__(
        self,
        ranks: Communicator,
        peer: int,
        cache: Cache,
        *,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> None:
        """Both ends make it. `layers` and `heads`: what is moved by this link, alike at both ends; all that both
        have if left out. Raises ValueError if that is nothing, and ConnectionError if the peer is lost."""
        self._ranks, self._peer, self.cache = ranks, peer, cache
        told = cache.form.to_json().ljust(_MOST_FORM)
        heard = bytearray(_MOST_FORM)
        wait_all([ranks.irecv(heard, peer, _FORM_TAG), ranks.isend(told, peer, _FORM_TAG)])
        theirs = Form.from_json(bytes(heard).rstrip())
        self.sends = Agreement(cache.form, theirs, layers=layers, heads=heads)
        """How requests are sent."""
        self.receives = Agreement(theirs, cache.form, layers=layers, heads=heads)
        """How they are received."""
        self._under_way: dict[int, list[Request]] = {}
        self._failed: list[Request] = []  # begun, of requests that could not be: their memory is in use

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
        if not 0 <= request <= _MOST_REQUEST or request in self._under_way:
            raise ValueError(f"request {request} is under way already, or no number from 0 to {_MOST_REQUEST}")
        pieces = agreed.pieces(self.cache, table, tokens, first)
        begun: list[Request] = []
        try:
            for array, layout, offset in pieces:
                begun.append(begin(array, self._peer, request + 1, layout=layout, offset=offset))
        except BaseException:
            self._failed += begun
            raise
        self._under_way[request] = begun


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
