"""`lacuna bench scale`: exchanges among many simulated ranks on nodes, by each schedule."""

HELP = """Exchange blocks among 2 to 1024 simulated ranks on up to 16 nodes, by each schedule.

The ranks of a node share a modelled NIC. Shown are virtual times, which are the same on every machine; messages, and
a rank's memory for them; which schedule is chosen, and how much another one would save. Every byte is compared.

\b
Examples:
  lacuna bench scale --quick
  lacuna bench scale --ranks 1024 --block 64 --output scale

"""
