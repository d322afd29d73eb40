"""The table of what comes from outside into the Python package: rows as those of `lacuna_fuzz`.

docs/design/simulator.md says how to add one, and names all rows of both tables.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lacuna.layout_text import LayoutTextError, read
from lacuna.worker.json_lines import LineError, RowError, answer
from lacuna.worker.protocol import SchemaError, parsed

CORPUS = Path(__file__).resolve().parent / "corpus"

_WORDS = (
    "0",
    "-1",
    "1",
    "9223372036854775807",
    "-9223372036854775808",
    "1e999",
    "null",
    "[]",
    "{}",
    '""',
    "\x00",
    "(",
    ")",
    ",",
    "@",
    "=",
)


@dataclass(frozen=True)
class Fuzzer:
    name: str
    smoke: int
    """Inputs of a smoke run, of five seconds at most."""
    least_taken: float
    """Of the inputs, the share that is no error: below it, they test the first letters only."""
    seeds: tuple[str, ...]
    judge: Callable[[str, bool], bool]
    """Whether the input was taken. Raises AssertionError where the package did wrong; with True it has to."""

    def draw(self, seed: int) -> str:
        """A seed, with numbers that are others, and words that are others, lost, or there twice."""
        dice = random.Random(seed)
        text = dice.choice(self.seeds)
        for _ in range(dice.randint(1, 4)):
            numbers = list(re.finditer(r"-?\d+", text))
            if numbers and dice.random() < 0.6:
                old = dice.choice(numbers)
                text = (
                    text[: old.start()]
                    + str(dice.choice((0, 1, 2, 3, 7, 100, -1, 1 << 31, 1 << 63)))
                    + text[old.end() :]
                )
                continue
            at = dice.randrange(len(text) + 1)
            end = min(len(text), at + dice.choice((0, 1, 1, 2, 5, 20)))
            other = dice.choice(self.seeds)
            begin = dice.randrange(len(other))
            new = dice.choice((dice.choice(_WORDS), "", text[at:end] * 2, other[begin : begin + dice.randint(1, 12)]))
            text = text[:at] + new + text[end:]
        return text


def _layout(text: str, planted: bool) -> bool:
    """A layout with a meaning, or an error that points into the text."""
    error = None
    try:
        found = read(text)
    except LayoutTextError as raised:
        error = raised
    if error is not None:
        assert 0 <= error.at <= len(text), error
        assert error.message
        return False
    assert found.layout.size >= 0
    assert bool(found.meaning) != planted
    return True


def _line(text: str, planted: bool) -> bool:
    """An object with the member that was asked for, or one of the errors that a reader of lines knows."""
    line = text.encode("utf-8", "surrogatepass")
    try:
        found = answer(line, "row")
    except (LineError, RowError):
        return False
    try:
        assert parsed(line)["row"] == found
    except SchemaError as error:
        raise AssertionError("it was read once, and is not read again") from error
    assert not planted
    return True


FUZZERS = (
    Fuzzer(
        "layout_text",
        4000,
        0.05,
        (
            "vector(3, 2, 5, double)",
            "hvector(3, 1, 48, hindexed([1, 2], [0, 16], int))",
            "struct([1, 2], [0, 8], [int, resized(double, 0, 16)])",
            "subarray([4, 5], [2, 3], [1, 1], int, order=F)",
            "indexed_block(2, [0, 5, 9], MPI_FLOAT)",
            "blocks([0, 100], [3, 4])",
            "paged(64, [3, 1, 2])",
            "MILC@0",
        ),
        _layout,
    ),
    Fuzzer(
        "worker_lines",
        20000,
        0.02,
        (
            '{"row": {"id": 3, "method": "pack", "latency_us": 2.5, "names": ["a", "b"]}}',
            '{"error": "this method needs a key"}',
            '{"row": {}}',
        ),
        _line,
    ),
)
