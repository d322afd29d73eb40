"""`lacuna bench interactions`: does what a simple model leaves out change which way is best?

command ──▶ race ──▶ ranks ── lines ──▶ rank, rank, ...     processes connected once for each way, forced
   │          └────▶ busy ── stopped and let go ──▶ a process that takes a CPU
   └──▶ simulated                                          the same on a modelled NIC, in virtual time
"""
