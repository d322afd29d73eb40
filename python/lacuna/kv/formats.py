"""How serving systems keep their caches, as the names of their arrays' dimensions."""

from __future__ import annotations

FORMATS: dict[str, str] = {
    # vLLM: an array for each layer. With VLLM_KV_CACHE_LAYOUT=HND the shape stays, and the strides change.
    "vllm:flash_attn": "kv block token head dim",
    "vllm:flashinfer": "block kv token head dim",
    "vllm:mla": "block token dim",
    # SGLang on the device: an array for each layer, K and V apart; a page is `block_size` slots in a row.
    "sglang:mha": "slot head dim",
    "sglang:mla": "slot head dim",
    # SGLang on the host (HiCache): one array for all layers.
    "sglang:layer_first": "kv layer slot head dim",
    "sglang:page_first": "kv slot layer head dim",
    "sglang:page_first_direct": "kv block layer token head dim",
    "sglang:page_head": "kv block head token layer dim",
    "sglang:mla:layer_first": "layer slot head dim",
    "sglang:mla:page_first": "slot layer head dim",
    "sglang:mla:page_first_direct": "block layer token head dim",
}
"""Dimensions of an array, the first index first: `block` (page) and `token` within it, or `slot` for both in one;
`head`, `layer`, `kv` (0 K, 1 V), `dim` (the numbers of a head for a token)."""

NAMES = ("layer", "kv", "block", "token", "slot", "head", "dim")


def dimensions(format_name: str) -> tuple[str, ...]:
    """Of a format by name, or of the names of dimensions. Raises ValueError: a word that is none, a dimension twice,
    neither blocks nor slots, no `dim` at the end."""
    names = tuple(FORMATS.get(format_name, format_name).split())
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no format and no dimension. Formats: {', '.join(FORMATS)}; {NAMES}")
    paged = ("slot" in names) != ("block" in names and "token" in names)
    if len(set(names)) != len(names) or not paged or ("slot" in names and {"block", "token"} & set(names)):
        raise ValueError(f"{format_name!r}: blocks and tokens, or slots, and each dimension once, are needed")
    if names[-1] != "dim":
        raise ValueError(f"{format_name!r}: the last dimension is `dim`, the numbers of a head for a token")
    return names
