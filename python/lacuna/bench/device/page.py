"""What `lacuna bench device` shows: a line for each group of layouts, all rows, a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lacuna.bench.device.rows import DeviceRow, DeviceRun, summaries
from lacuna.bench.presentation import Picture, Presentation, table_of
from lacuna.report.row_tables import RowTable
from lacuna.units import bytes_text, us_text


class DevicePresentation(Presentation[DeviceRun]):
    name = "device"
    subject = "Copies of GPU memory"
    heading = "Layouts of GPU memory, moved by the GPU"
    meanings = (
        "The limit is the time of a contiguous copy of as many bytes as the memory has to move; rows of 16 MB and more "
        "count. The others are CUDA's copy engine, torch and CuPy, where they can express the layout; below 1 Lacuna "
        "is faster."
    )

    def figures(self) -> RowTable:
        rows = []
        for line in summaries(self.result):
            numbers = (line.share, line.worst, line.over_best, line.worst_over_best)
            rows.append([line.group, str(line.rows), *("" if n != n else f"{n:.2f}" for n in numbers)])
        head = ["layouts", "rows", "share of the limit", "worst", "time over the best other", "worst"]
        return RowTable(head, rows)

    def remarks(self) -> Iterator[str]:
        for other in self.result.other:
            ((kind, what),) = other.items()
            if kind == "faces":
                empty = f"an empty one {what['nothing_us']:.1f}"
                yield f"{what['pairs']} faces in one launch: {what['us']:.1f} us, {empty}"
            elif kind == "processes" and "skipped" not in what:
                yield f"pages from another process: {what['share_of_copy']:.2f} of a contiguous copy"

    def pictures(self) -> Iterator[Picture]:
        from lacuna.bench.device.picture import shares

        caption = "Share of its limit that each contender reaches"
        yield Picture("Shares of the limit", "device.png", shares(self.result), caption)

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        columns: dict[str, Callable[[DeviceRow], str]] = {
            "layouts": lambda r: r.group,
            "layout": lambda r: r.name,
            "bytes": lambda r: bytes_text(r.payload),
            "Lacuna, µs": lambda r: us_text(r.ours),
            "share of the limit": lambda r: f"{r.share:.2f}",
            "others, µs": lambda r: ", ".join(f"{n} {us_text(us)}" for n, us in r.us.items() if n != "lacuna"),
        }
        yield "Every row", "", table_of(columns, self.result.rows, 2)
