"""What `lacuna-worker --messages` answers, made up.

The environment variable FAKE_MESSAGES sets how it misbehaves: wrong (a way moves a wrong byte), dies, garbage, few (a
way has no time), other (another cell), copies_not (the system has no direct copies), strays (the ranks are apart for
some cells, once), moving (they are so for every second cell); exchange_wrong (an exchange moves a wrong byte),
exchange_few (a price is missing), exchange_free (a price is 0), exchange_waits (no time is left for a latency).
"""

from __future__ import annotations

import json
import os
import sys

MODE = os.environ.get("FAKE_MESSAGES", "")
TROUBLE_AT = 7
BESIDE = {"eager": (200, 0.25), "wide": (900, 0.1), "narrow": (1500, 0.1), "passed": (1600, 0.1)}
RARE = {"direct": (9000, 0.05), "rendezvous": (5000, 0.2)}
"""Nanoseconds of a message, and of each byte. Eager is the fastest up to 4 KiB, direct from 256 KiB on."""


EXCHANGES = {"latency": 700.5, "message": 150.25, "large": 2500.0, "block": 4.0, "byte": 0.123456}


def answer_exchanges() -> None:
    if MODE == "exchange_wrong":
        print(json.dumps({"error": "transfer: an exchange of 16 messages: byte 3 is wrong"}), flush=True)
        sys.exit(1)
    prices = dict(EXCHANGES)
    if MODE == "exchange_few":
        del prices["large"]
    if MODE == "exchange_free":
        prices["large"] = 0.0
    if MODE == "exchange_waits":
        prices["latency"] = 2.0**-10
    print(json.dumps({"exchanges": prices}), flush=True)


def times(size: int, run: int) -> dict[str, float]:
    made = {way: start + byte * size for way, (start, byte) in {**BESIDE, **RARE}.items()}
    if size > 16384:
        del made["eager"]
    if size < 65536 or run < 4096 or MODE == "copies_not":
        del made["direct"]
    return made


def serve() -> None:
    for number, line in enumerate(sys.stdin):
        request = json.loads(line)
        if "exchanges" in request:
            answer_exchanges()
            continue
        size, run = request["bytes"], request["run"]
        ns = {form: times(size, run) for form in ("regular", "listed")}
        apart = (MODE == "moving" and number % 2 == 1) or (MODE == "strays" and 3 <= number < 6)
        if number == TROUBLE_AT and MODE == "wrong":
            print(
                json.dumps({"error": "transfer: 2048 bytes in regular runs of 64, way narrow: byte 3 is wrong"}),
                flush=True,
            )
            sys.exit(1)
        if number == TROUBLE_AT and MODE == "dies":
            os.abort()
        if number == TROUBLE_AT and MODE == "garbage":
            print("{'not': json}", flush=True)
            continue
        if number == TROUBLE_AT and MODE == "few":
            del ns["listed"]["wide"]
        if number == TROUBLE_AT and MODE == "other":
            size *= 2
        print(
            json.dumps({"cell": {"bytes": size, "run": run, "message_us": 9.0 if apart else 1.5, "ns": ns}}), flush=True
        )
