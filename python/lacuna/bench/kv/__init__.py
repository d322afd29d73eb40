"""`lacuna bench kv`: the transfers of serving systems that public threads describe, by Lacuna's choice and by the two
rules that others have: always a write for each piece, always packed."""

HELP = """Reproduce transfers of serving systems that public threads describe: bulk, paged, slices of heads.

Of each case, in full size: bytes that describe it, as layouts and as a list of descriptors; the time to make both
layouts from the block tables. Then a part of it is moved between two processes, by every method: the time of Lacuna's
choice, of a write for each piece (direct), of packing, and what posting takes of each. Every transfer is verified.

\b
Examples:
  lacuna bench kv --quick
  lacuna bench kv --nic ofi:tcp --nic model:what-if-400g --json kv.json
  lacuna bench kv --only sglang

"""
