"""Runs `lacuna bench device`: starts the bench on the GPU, then torch and CuPy on the same rows; writes and shows."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from lacuna import __version__, clock
from lacuna.bench import session
from lacuna.bench.device import picture as device_figures
from lacuna.bench.device.rows import DeviceBench, summaries
from lacuna.bench.progress import Meter
from lacuna.report.style import save_png
from lacuna.worker.client import WorkerError, find_executable

_ARRAYS = Path(__file__).with_name("array_libraries.py")


def run(
    *, device: str, payload: int, groups: str, warm: bool, data: Path | None, output: Path | None, budget: float
) -> None:
    """The whole command; ends with the status that its help documents."""
    session.prepare_json(data)
    if output:
        session.prepare(output)
    console = session.console(to_stderr=session.is_stdout(data))
    result = DeviceBench(__version__, session.created())
    failure: WorkerError | None = None
    options = ["--device", device, "--payload", str(payload), "--seconds", str(max(1, int(budget)))]
    options += (["--groups", groups] if groups else []) + (["--warm"] if warm else [])
    try:
        with session.terminable(), tempfile.TemporaryDirectory() as folder:
            said = Path(folder) / "bench.jsonl"
            _measure(console, result, options, budget, said)
            _arrays(console, result, device, said)
    except KeyboardInterrupt:
        result.interrupted = True
    except WorkerError as e:
        failure = e
    if result.rows or result.other:
        _deliver(console, result, data, output)
    if failure is not None:
        session.fail(str(failure))
    session.end(result.errors, interrupted=result.interrupted)


def _measure(console: Console, result: DeviceBench, options: list[str], budget: float, said: Path) -> None:
    line = [str(find_executable("lacuna-device-bench", "LACUNA_DEVICE_BENCH")), *options]
    deadline = clock.now() + budget
    with (
        subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        said.open("w", encoding="utf-8") as kept,
    ):
        try:
            lines = _lines(process)
            first = next(lines, None)
            if first is not None:
                kept.write(first)
                result.take(first)
                with Meter(console, result.planned, deadline - clock.now(), "rows") as meter:
                    done = 0
                    for text in lines:
                        kept.write(text)
                        done += result.take(text)
                        meter.advance(done, max(done, result.planned), deadline - clock.now())
        except ValueError as e:
            raise WorkerError(f"lacuna-device-bench broke the protocol: {e}") from e
        finally:
            process.terminate()
        words = process.stderr.read().strip() if process.stderr else ""
    if words:
        raise WorkerError(words)


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    yield from process.stdout


def _arrays(console: Console, result: DeviceBench, device: str, said: Path) -> None:
    if not device.startswith("cuda:") or importlib.util.find_spec("torch") is None:
        console.print("torch and CuPy: not compared with (they are not installed, or this is no GPU)")
        return
    with console.status("torch and CuPy on the same rows"):
        done = subprocess.run([sys.executable, _ARRAYS, said], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WorkerError(f"torch and CuPy could not be measured: {done.stderr.strip()[-400:]}")
    result.add_arrays(done.stdout.splitlines())


def _deliver(console: Console, result: DeviceBench, data: Path | None, output: Path | None) -> None:
    def draw(directory: Path) -> list[Path]:
        figure = device_figures.shares(result)
        if figure is None:
            return []
        save_png(figure, directory / "device.png")
        return [directory / "device.png"]

    files = session.deliver(console, result.to_json(), data, output, "device.json", draw)
    show(console, result)
    session.show_written(console, files)


def show(console: Console, result: DeviceBench) -> None:
    """Prints a line for each group of layouts, and what else was measured."""
    card = result.card
    console.print(f"{card.get('device', '')}: {card.get('model', '')}, CUDA {card.get('driver', '') or 'none'}")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 2, 0, 0))
    for column in ("layouts", "rows", "share of the limit", "worst", "time over the best other", "worst"):
        table.add_column(column, justify="left" if column == "layouts" else "right")
    for line in summaries(result):
        numbers = (line.share, line.worst, line.over_best, line.worst_over_best)
        table.add_row(line.group, str(line.rows), *("" if n != n else f"{n:.2f}" for n in numbers))
    console.print(table)
    for other in result.other:
        ((kind, what),) = other.items()
        if kind == "faces":
            console.print(
                f"{what['pairs']} faces in one launch: {what['us']:.1f} us, an empty one {what['nothing_us']:.1f}"
            )
        elif kind == "processes" and "skipped" not in what:
            console.print(f"pages from another process: {what['share_of_copy']:.2f} of a contiguous copy")
    if result.left_out:
        console.print(f"{result.left_out} rows were left out: the budget was used up")


def read(folder: Path) -> DeviceBench:
    """What scripts/gpu_check.sh left in a folder. Raises typer.BadParameter."""
    result = DeviceBench(__version__, session.created())
    try:
        for line in (folder / "bench.jsonl").read_text(encoding="utf-8").splitlines():
            result.take(line)
        arrays = folder / "arrays.jsonl"
        if arrays.is_file():
            result.add_arrays(arrays.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError, KeyError) as e:
        raise typer.BadParameter(f"{folder}: {e}", param_hint="--from") from e
    return result


def redraw(folder: Path, data: Path | None, output: Path | None) -> None:
    """Shows and writes what was measured elsewhere."""
    session.prepare_json(data)
    if output:
        session.prepare(output)
    console = session.console(to_stderr=session.is_stdout(data))
    result = read(folder)
    _deliver(console, result, data, output)
    session.end(result.errors, interrupted=False)
