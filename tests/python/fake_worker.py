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

import fake_messages
from fake_devices import devices, providers
from fake_remote_host import There, listen
from fake_tables import AI, CORPUS, COSTS, KEY_COSTS, METHODS, NOTIFY, PATHS

MODE = os.environ.get("FAKE_WORKER", "")
TROUBLE_AT = 5
"""The request at which a misbehaving worker misbehaves."""


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


def corpus(suite: object) -> list[dict[str, object]]:
    names = ("payload_bytes", "dims", "span_bytes", "blocks")
    if suite == "ai":
        return [
            {"name": name, "summary": summary, "sizes": [dict(zip(names, size, strict=True))]}
            for name, summary, size in AI
        ]
    return [{"name": name, "sizes": [dict(zip(names, size, strict=True)) for size in sizes]} for name, sizes in CORPUS]


def trouble(there: There | None) -> bool:
    """Misbehaves; true if the worker ends."""
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
        return True
    if MODE == "kills" and there:
        there.kill()
    return False


def serve(there: There | None) -> None:
    rng = random.Random(7)
    for line in sys.stdin:
        request = json.loads(line)
        if there:
            there.still()
        if "devices" in request:
            none = {"none": "no RDMA device: `ibv_devices` lists what the kernel has", "list": []}
            say({"devices": devices() if MODE == "devices" else none})
            continue
        if "providers" in request:
            none = {"none": "NIC ofi needs libfabric", "list": []}
            say({"providers": providers() if MODE == "devices" else none})
            continue
        if "corpus" in request:
            say({"corpus": corpus(request["corpus"]["suite"])})
            continue
        verb, answer = ("keys", keys) if "keys" in request else ("measure", measure)
        if request[verb]["id"] == TROUBLE_AT and trouble(there):
            return
        answer(request[verb], rng)


def main() -> None:
    if "--messages" in sys.argv:
        fake_messages.serve()
        return
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
    serve(there)
    if there:
        there.farewell()
    if MODE == "deaf":
        time.sleep(3600)


if __name__ == "__main__":
    main()
