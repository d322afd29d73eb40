"""What the fake worker makes up: methods, paths, what they cost in microseconds, and the names of a corpus."""

from __future__ import annotations

METHODS = {
    "pack": (False, ["none"], "CPU packs, one SEND, CPU unpacks"),
    "pack_pipelined": (False, ["none"], "packs chunk k+1 while k flies"),
    "pack_write": (True, ["none", "imm", "flag"], "CPU packs, one WRITE, CPU unpacks"),
    "gather_write": (True, ["none", "imm", "flag"], "NIC gathers into a WRITE, CPU unpacks"),
    "scatter_read": (True, ["none", "flag"], "CPU packs, the receiver's NIC reads and scatters"),
    "linked_write": (True, ["none", "imm", "flag"], "one WRITE for each piece, one doorbell"),
    "multi_write": (True, ["none", "imm", "flag"], "one WRITE for each piece, in place"),
    "sgrs": (False, ["none"], "NIC gathers on SEND and scatters on RECV"),
    "umr_send": (False, ["none"], "one key for many pieces on both sides, SEND"),
    "umr_write": (True, ["none", "imm", "flag"], "one key for many pieces on both sides, WRITE"),
    "umr_read": (True, ["none", "flag"], "one key for many pieces on both sides, READ"),
    "umr_chunked": (False, ["none"], "several short keys instead of a long one"),
    "by_hand_elements": (False, ["none"], "a loop over elements, one send"),
    "by_hand_memcpy": (False, ["none"], "a memcpy for each block, one send"),
}
PATHS = {
    "mapped": (True, True, "initiator", 0),
    "slots": (False, False, "both", 4096),
    "kernel": (True, False, "both", 0),
}
"""Whether the target may be passive and the memory has to be Lacuna's, who moves, and how much at once."""
# Microseconds: at all, for each block, for each KiB.
COSTS = {
    ("pack", "mapped"): (0.9, 0.012, 0.14),
    ("pack", "slots"): (1.0, 0.012, 0.20),
    ("pack", "kernel"): (3.0, 0.012, 0.25),
    ("pack_pipelined", "mapped"): (1.3, 0.013, 0.085),
    ("pack_pipelined", "slots"): (1.2, 0.013, 0.11),
    ("pack_pipelined", "kernel"): (5.0, 0.013, 0.18),
    ("gather_write", "mapped"): (0.9, 0.020, 0.11),
    ("gather_write", "slots"): (1.1, 0.025, 0.19),
    ("gather_write", "kernel"): (2.4, 0.25, 0.14),
    ("multi_write", "mapped"): (0.7, 0.045, 0.06),
    ("multi_write", "slots"): (0.9, 0.30, 0.17),
    ("multi_write", "kernel"): (1.6, 1.70, 0.08),
    ("sgrs", "mapped"): (0.8, 0.016, 0.065),
    ("sgrs", "slots"): (1.0, 0.018, 0.15),
    ("sgrs", "kernel"): (2.0, 0.45, 0.085),
    ("pack_write", "mapped"): (0.8, 0.012, 0.15),
    ("pack_write", "slots"): (0.9, 0.012, 0.21),
    ("pack_write", "kernel"): (2.6, 0.012, 0.26),
    ("scatter_read", "mapped"): (1.1, 0.020, 0.12),
    ("scatter_read", "kernel"): (2.5, 0.26, 0.15),
    ("linked_write", "mapped"): (0.7, 0.030, 0.06),
    ("linked_write", "slots"): (0.9, 0.20, 0.17),
    ("linked_write", "kernel"): (1.6, 1.50, 0.08),
    ("umr_send", "mapped"): (1.6, 0.012, 0.066),
    ("umr_write", "mapped"): (0.75, 0.012, 0.066),
    ("umr_read", "mapped"): (1.7, 0.012, 0.066),
    ("umr_chunked", "mapped"): (1.2, 0.014, 0.064),
    ("by_hand_elements", "mapped"): (0.9, 0.013, 0.16),
    ("by_hand_elements", "slots"): (1.0, 0.013, 0.22),
    ("by_hand_memcpy", "mapped"): (0.9, 0.020, 0.15),
    ("by_hand_memcpy", "slots"): (1.0, 0.020, 0.21),
}
AI = [
    ("kv_pages_32K", "pages", (8 << 20, "256 of 24000", 16 << 20, 256)),
    ("descriptors_256B", "small pieces", (8 << 20, "32768 of 1400000", 24 << 20, 32768)),
]
KEY_COSTS = {"create_key": (9.0, 0.05), "bind_key": (0.6, 0.008), "invalidate_key": (0.3, 0.0005)}
NOTIFY = {"none": 0.0, "imm": 0.25, "flag": 0.45}
CORPUS = [
    ("WRF_y_vec", [(90804, "32x65x52", 3055104, 987), (63168, "24x65x34", 1498176, 987)]),
    ("WRF_y_sa", [(90804, "32x65x52", 3055104, 987), (63168, "24x65x34", 1498176, 987)]),
    ("WRF_x_vec", [(173712, "32x65x52", 3055104, 14476), (63168, "19x65x24", 837216, 5264)]),
    ("WRF_x_sa", [(173712, "32x65x52", 3055104, 14476), (63168, "19x65x24", 837216, 5264)]),
    ("MILC_su3_zd", [(98304, "16x16x16x16", 1572864, 32), (12288, "8x8x8x8", 98304, 16)]),
    ("NAS_LU_x", [(480, "12x12", 7840, 1), (16320, "408x408", 6724000, 1)]),
    ("NAS_LU_y", [(480, "12x12", 7840, 12), (16320, "408x408", 6724000, 408)]),
    ("NAS_MG_x", [(2048, "34x18x18", 88128, 256), (32768, "130x66x66", 4530240, 4096)]),
    ("NAS_MG_y", [(4096, "34x18x18", 88128, 16), (65536, "130x66x66", 4530240, 64)]),
    ("NAS_MG_z", [(4096, "34x18x18", 88128, 16), (65536, "130x66x66", 4530240, 64)]),
    ("LAMMPS_full", [(195968, "3062 of 3534", 422144, 18372), (106368, "1662 of 1907", 228416, 9972)]),
    ("LAMMPS_atomic", [(11664, "243 of 4084", 207696, 972), (5472, "114 of 1217", 63888, 456)]),
    ("SPECFEM3D_oc", [(12900, "3225 of 88881", 355524, 3225), (1972, "493 of 3697", 14788, 493)]),
    ("SPECFEM3D_cm", [(177672, "11797+3009", 10632840, 14806), (26424, "1957+245", 493848, 2202)]),
    ("SPECFEM3D_mt", [(91200, "3x2x7600", 182400, 7600), (67200, "3x2x5600", 134400, 5600)]),
    ("FFT2", [(524288, "256 on 2", 524288, 32768), (18874368, "1536 on 2", 18874368, 1179648)]),
]
