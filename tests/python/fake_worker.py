#!/usr/bin/env python3
"""A worker that measures nothing: it speaks the protocol and makes up plausible times, to test the command alone.

The environment variable FAKE_WORKER sets how it misbehaves: die, garbage, hang, error (one request fails), wrong (one
method fails in every request), unverified, stale (an old protocol), silent (no hello), nodata (every method fails),
deaf (it does not end when its input ends), held (it makes the file that FAKE_WORKER_HELD names, and waits for the end
of its input), kills (the receiver on the other machine), nokeys (a NIC without indirect keys), moving (the machine is
in another state for a third of the requests), faulty (a fault was planted), devices (there are RDMA devices), soft (the
NIC is one in software).
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import time
from pathlib import Path

from fake_remote_host import There, listen

MODE = os.environ.get("FAKE_WORKER", "")
TROUBLE_AT = 5
"""The request at which a misbehaving worker misbehaves."""

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


def say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else ""


def hello() -> dict[str, object]:
    return {
        "protocol": 0 if MODE == "stale" else 1,
        "version": "0.1.0",
        "machine": {
            "cpu": "Invented CPU <9000>",
            "kernel": "Linux 6.1.0",
            "cpus": 2,
            "l1d_bytes": 32768,
            "l2_bytes": 1 << 20,
            "llc_bytes": 32 << 20,
            "page_bytes": 4096,
            "memory_bytes": 8 << 30,
        },
        "nic": {
            "name": option("--nic") if option("--nic").startswith("verbs:") else "local",
            "max_sge": 1024,
            "max_sge_rd": 1024,
            "max_inline": 256,
            "max_send_wr": 4096,
            "max_recv_wr": 4096,
            "max_message_bytes": 1 << 31,
            "indirect": {
                name: 0 if MODE == "nokeys" else limit
                for name, limit in (
                    ("keys", 4096),
                    ("entries", 65536),
                    ("inline_entries", 16),
                    ("strided_entries", 4),
                    ("stride", 1 << 30),
                )
            },
            "paths": [
                {
                    "name": name,
                    "available": True,
                    "passive_target": passive,
                    "shared_only": shared,
                    "mover": mover,
                    "unit_bytes": unit,
                    "note": "invented",
                }
                for name, (passive, shared, mover, unit) in PATHS.items()
            ],
            "emulated": MODE == "soft",
        },
        "methods": [
            {"name": name, "one_sided": one_sided, "notifies": notifies, "summary": summary}
            for name, (one_sided, notifies, summary) in METHODS.items()
        ],
        "fault": "slow:sgrs:50" if MODE == "faulty" else "",
    }


def conditions(number: object, rng: random.Random) -> dict[str, object]:
    moved = MODE == "moving" and int(str(number)) % 3 == 0

    def probe() -> dict[str, float]:
        exact = {"message_us": 9.0 if moved else 2.8, "sender_us": 7.0, "receiver_us": 7.0}
        return {name: us * rng.gauss(1, 0.005) for name, us in exact.items()}

    return {
        "probes": [probe(), probe(), probe()],
        "preempted": 0,
        "stolen_ms": 0.0,
        "setup_ms": 0.4,
        "measuring_ms": 0.6,
    }


def subject(spec: dict[str, object]) -> tuple[str, int, int, int, str]:
    if spec["kind"] == "grid":
        size, count = int(str(spec["block_bytes"])), int(str(spec["block_count"]))
        return "grid", size, count, size * count, str(spec["shape"])
    if spec["kind"] == "blocks":
        size, count, gap = (int(str(spec[name])) for name in ("block_bytes", "block_count", "gap_bytes"))
        shape = str(spec["shape"])
        assert spec["remote"] in ("same", "contiguous")
        assert gap > 0
        assert size % (4 if shape == "sender_finer" else 1) == 0
        assert count % (2 if shape == "sender_coarser" else 1) == 0
        return "blocks", size, count, size * count, shape
    if spec["kind"] == "stencil":
        points, size = int(str(spec["points"])), int(str(spec["point_bytes"]))
        assert points % 4 == 1
        count = (points + 1) // 2
        return "stencil", points * size // count, count, points * size, "symmetric"
    if spec["kind"] == "pair":
        # Imported here: most requests need it not.
        from lacuna._core import Layout

        send, receive = (Layout.from_wire(bytes.fromhex(str(spec[side]))) for side in ("send", "receive"))
        assert send.size == receive.size
        count = max(send.run_count, receive.run_count)
        return str(spec["name"]), send.size // count, count, send.size, "symmetric"
    if spec["kind"] == "ai":
        payload, dims, _, blocks = {name: size for name, _, size in AI}[str(spec["name"])]
        assert payload <= int(str(spec["most_payload"]))
    else:
        payload, dims, _, blocks = dict(CORPUS)[str(spec["name"])][int(str(spec["size"]))]
    return f"{spec['name']} {dims}", payload // blocks, blocks, payload, "symmetric"


def counters(method: str, count: int, payload: int) -> dict[str, object]:
    """What each side does, as if 32 pieces fitted into a list."""
    lists, packs = math.ceil(count / 32), method.startswith("pack")
    writes = 1 if packs or method.startswith("umr") else lists if method in ("sgrs", "gather_write") else count
    names = [
        "work_requests",
        "receives",
        "sges",
        "doorbells",
        "completions",
        "keys_created",
        "keys_bound",
        "key_entries",
        "bytes_copied",
    ]
    keys = count if method.startswith("umr") or method.endswith("_key") else 0
    copied = payload if packs else 0
    send = (writes, 0, 1 if packs or keys else count, writes if method == "multi_write" else 1, 1)
    receive = (0, 1, 1 if packs or keys else count, 1, 1)
    return {
        "send": dict(zip(names, (*send, int(method == "create_key"), int(keys > 0), keys, copied), strict=True)),
        "receive": dict(zip(names, (*receive, 0, int(keys > 0), keys, copied), strict=True)),
    }


def keys(request: dict[str, object], rng: random.Random) -> None:
    number, entries = request["id"], int(str(request["entries"]))
    for method, (fixed, entry) in KEY_COSTS.items():
        who = {"id": number, "method": method, "path": "mapped", "notify": "none"}
        if MODE == "nokeys":
            say({"skip": {**who, "reason": "the NIC has no indirect keys"}})
            continue
        time_us = (fixed + entry * entries) * rng.gauss(1, 0.01)
        say({"row": row(who, "warm", ("keys", 64, entries, 64 * entries, "symmetric"), time_us, censored=False)})
    say({"done": {"id": number, "conditions": conditions(number, rng)}})


def row(
    who: dict[str, object], cache: object, what: tuple[str, int, int, int, str], time_us: float, *, censored: bool
) -> dict[str, object]:
    layout, size, count, payload, shape = what
    method, path = str(who["method"]), str(who["path"])
    spread = None if censored or time_us > 5e3 else time_us * 0.013
    copy_us = min(0.4 * time_us, 0.05 + payload / 9e3) if method.startswith("pack") else 0
    found = {
        **who,
        "nic": "local",
        "layout": layout,
        "block_bytes": size,
        "block_count": count,
        "payload_bytes": payload,
        "shape": shape,
        "cache": cache,
        "latency_us": time_us,
        "ci_low_us": time_us - spread if spread else None,
        "ci_high_us": time_us + spread if spread else None,
        "ci_level": 0.95 if spread else None,
        "cpu_send_us": time_us * (0.5 if path == "slots" else 0.97),
        "cpu_recv_us": time_us * (0.5 if method.startswith("pack") else 0.25),
        "copy_send_us": copy_us,
        "copy_recv_us": copy_us * 0.9,
        "counters": counters(method, count, payload),
        "behind": None,
        "behind_low": None,
        "behind_high": None,
        "half_us": [time_us * 0.995, time_us * 1.005],
        "visits": 0 if censored else 12,
        "samples": 1 if censored else 100,
        "censored": censored,
        "verified": MODE != "unverified",
    }
    if censored:
        found["reason"] = "one transfer took longer than censor_ms"
    return found


def measure(request: dict[str, object], rng: random.Random) -> None:
    number = request["id"]
    spec = request["layout"]
    assert isinstance(spec, dict)
    what = subject(spec)
    layout, _, count, payload, shape = what
    methods = request.get("methods", list(METHODS))
    wanted = request.get("notifies", list(NOTIFY))
    assert isinstance(methods, list)
    assert isinstance(wanted, list)
    assert set(methods) <= set(METHODS)
    assert set(wanted) <= set(NOTIFY)
    left_out = request.get("leave_out", [])
    assert isinstance(left_out, list)
    rows: list[dict[str, object]] = []
    pieces = count * {"sender_finer": 2.0, "sender_coarser": 1.0}.get(shape, 1.0)
    for (method, path), (fixed, block, kib) in COSTS.items():
        for notify in METHODS[method][1]:
            if method not in methods or notify not in wanted or [method, path] in left_out:
                continue
            who: dict[str, object] = {"id": number, "method": method, "path": path, "notify": notify}
            if method == "sgrs" and path == "kernel" and count > 16384:
                say({"skip": {**who, "reason": f"{count} pieces exceed max_recv_wr x max_sge"}})
                continue
            if method.startswith("umr") and MODE == "nokeys":
                say({"skip": {**who, "reason": "the NIC has no indirect keys"}})
                continue
            fails = MODE == "wrong" or (MODE == "error" and number == TROUBLE_AT)
            if MODE == "nodata" or (fails and method == "sgrs"):
                say({"error": {**who, "layout": layout, "message": "byte 17 is 0x00, expected 0x5a"}})
                continue
            cold = 2.1 if request["cache"] == "cold" else 1.0
            large = 1.6 if payload > 4 << 20 else 1.0
            time_us = (fixed + NOTIFY[notify] + block * pieces + cold * large * kib * payload / 1024) * rng.gauss(
                1, 0.02
            )
            censored = time_us > float(str(request["censor_ms"])) * 1e3
            rows.append(row(who, request["cache"], what, time_us, censored=censored))
    compare(rows)
    for found in rows:
        say({"row": found})
    say({"done": {"id": number, "conditions": conditions(number, rng)}})


def compare(rows: list[dict[str, object]]) -> None:
    """How far each is behind the best, as the worker reports it."""
    times = [float(str(r["latency_us"])) for r in rows if not r["censored"] and "by_hand" not in str(r["method"])]
    for found in rows:
        if not found["censored"]:
            behind = float(str(found["latency_us"])) / min(times)
            width = 0.0 if behind == 1 else 0.01
            found.update(behind=behind, behind_low=behind * (1 - width), behind_high=behind * (1 + width))


def devices() -> dict[str, object]:
    """None, or a made-up one of each kind."""
    if MODE != "devices":
        return {"none": "no RDMA device: `ibv_devices` lists what the kernel has", "list": []}
    limits = {
        "max_sge": 32,
        "max_sge_rd": 32,
        "max_inline": 512,
        "max_send_wr": 4096,
        "max_cqe": 32767,
        "max_message_bytes": 8 << 20,
        "indirect_keys": 0,
        "indirect_entries": 0,
    }
    port = {"number": 1, "state": "active", "link_layer": "Ethernet", "active_mtu": 4096, "max_mtu": 4096, "lid": 0}
    soft: dict[str, object] = {
        "nic": "verbs:rxe0",
        "driver": "",
        "firmware": "",
        "emulated": True,
        "refusal": "",
        "connection": "port 1: RoCE, GID 1 (::ffff:10.77.0.1), MTU 4096",
        "advertised": {**limits, "max_sge": 30},
        "probed": limits,
        "no_umr": "rxe0 is no mlx5 device",
        "windows": "1, 2B",
        "on_demand_paging": False,
        "ports": [port],
    }
    keys = {**limits, "indirect_keys": 1000, "indirect_entries": 64}
    real = {
        **soft,
        "nic": "verbs:mlx5_0",
        "driver": "mlx5_core",
        "emulated": False,
        "probed": keys,
        "no_umr": "",
        "windows": "1",
        "on_demand_paging": True,
    }
    down = {**soft, "nic": "verbs:mlx5_1", "emulated": False, "refusal": "no port of mlx5_1 is up"}
    return {"none": "", "list": [soft, real, down]}


def main() -> None:
    rng = random.Random(7)
    greeting = hello()
    there = None
    if address := option("--listen"):
        nic = greeting["nic"]
        assert isinstance(nic, dict)
        listen(address, nic)
        return
    if address := option("--connect"):
        there = There(address, option("--visit"))
        greeting["peer"] = {"address": address, "machine": greeting["machine"], "nic": greeting["nic"]}
    if MODE == "silent":
        time.sleep(3600)
    say({"hello": greeting})
    for line in sys.stdin:
        request = json.loads(line)
        if there:
            there.still()
        if "devices" in request:
            say({"devices": devices()})
            continue
        if "corpus" in request:
            sizes = ("payload_bytes", "dims", "span_bytes", "blocks")
            if request["corpus"]["suite"] == "ai":
                some = [
                    {"name": name, "summary": summary, "sizes": [dict(zip(sizes, s, strict=True))]}
                    for name, summary, s in AI
                ]
                say({"corpus": some})
                continue
            say(
                {
                    "corpus": [
                        {"name": name, "sizes": [dict(zip(sizes, s, strict=True)) for s in found]}
                        for name, found in CORPUS
                    ]
                }
            )
            continue
        verb, answer = ("keys", keys) if "keys" in request else ("measure", measure)
        request = request[verb]
        if request["id"] == TROUBLE_AT:
            if MODE == "die":
                print("assertion failed: the sky is up", file=sys.stderr, flush=True)
                os.abort()
            if MODE == "garbage":
                print("{'not': json}", flush=True)
            if MODE == "hang":
                time.sleep(3600)
            if MODE == "held":
                Path(os.environ["FAKE_WORKER_HELD"]).touch()
                sys.stdin.read()
                break
            if MODE == "kills" and there:
                there.kill()
        answer(request, rng)
    if there:
        there.farewell()
    if MODE == "deaf":
        time.sleep(3600)


if __name__ == "__main__":
    main()
