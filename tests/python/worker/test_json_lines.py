"""Lines of another process, however it behaves."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from lacuna.worker.json_lines import (
    LONGEST_LINE,
    EndError,
    EndlessError,
    LineError,
    Lines,
    RowError,
    SilenceError,
    answer,
)

pytestmark = pytest.mark.check


class Pipe:
    def __init__(self) -> None:
        self.read, self.write = os.pipe()

    def close(self) -> None:
        os.close(self.read)
        if self.write >= 0:
            os.close(self.write)

    def end(self) -> None:
        os.close(self.write)
        self.write = -1


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def soon() -> float:
    """For what has come already, or does not come."""
    return time.monotonic() + 0.05


def test_lines_come_whole_and_in_order(pipe: Pipe) -> None:
    lines = Lines(pipe.read)
    os.write(pipe.write, b"one\ntwo\nthr")
    assert lines.read(soon()) == b"one"
    os.write(pipe.write, b"ee\n")
    assert [lines.read(soon()) for _ in range(2)] == [b"two", b"three"]


def test_what_has_come_is_read_after_the_deadline_too(pipe: Pipe) -> None:
    os.write(pipe.write, b"late\n")
    assert Lines(pipe.read).read(time.monotonic() - 1) == b"late"


def test_silence_and_the_end(pipe: Pipe) -> None:
    lines = Lines(pipe.read)
    os.write(pipe.write, b"half a li")
    with pytest.raises(SilenceError, match="fell silent"):
        lines.read(soon())
    pipe.end()
    with pytest.raises(EndError, match="died"):
        lines.read(soon())


def test_a_line_without_an_end(pipe: Pipe) -> None:
    lines = Lines(pipe.read)
    with pytest.raises(EndlessError):  # noqa: PT012, whichever read it is that finds out
        for _ in range(LONGEST_LINE // 60_000 + 2):
            os.write(pipe.write, b"x" * 60_000)
            try:
                lines.read(time.monotonic())
            except SilenceError:
                continue


def test_others_are_heard_while_a_line_is_waited_for(pipe: Pipe) -> None:
    errors = Pipe()
    heard: list[bytes] = []
    lines = Lines(pipe.read, {errors.read: heard.append})
    os.write(errors.write, b"a warning")
    errors.end()
    with pytest.raises(SilenceError):
        lines.read(time.monotonic())  # what they have said already is heard even so
    assert b"".join(heard) == b"a warning"
    os.write(pipe.write, b"a line\n")
    assert lines.read(soon()) == b"a line"
    errors.close()


def test_what_a_bench_says() -> None:
    assert answer(b'{"row": {"us": 1}}', "row") == {"us": 1}
    with pytest.raises(RowError, match="wrong bytes"):
        answer(b'{"error": "wrong bytes"}', "row")
    with pytest.raises(LineError, match="no JSON"):
        answer(b"garbage", "row")
    with pytest.raises(LineError, match="sent no row"):
        answer(b'{"row": 7}', "row")
