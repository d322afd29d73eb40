"""KV caches from server to server: `import lacuna.kv`.

cache = kv.Cache(layers, "vllm:flash_attn")          arrays as they are, in a format by name
link = kv.Link(ranks, peer, cache)                   to a peer whose cache is of any format
link.send(request, block_table, tokens)              or receive(); then wait(), done(), completed()
kv.copy(cache, table, other, other_table, tokens)    within one process
"""

from __future__ import annotations

from lacuna.kv.agreement import Agreement, Piece
from lacuna.kv.cache import Cache, Form
from lacuna.kv.formats import FORMATS
from lacuna.kv.link import REQUESTS, Link, copy
from lacuna.kv.routes import Route, routes

__all__ = ["FORMATS", "REQUESTS", "Agreement", "Cache", "Form", "Link", "Piece", "Route", "copy", "routes"]
