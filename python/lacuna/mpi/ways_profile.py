"""The file by which preloaded MPI programs choose their ways: the times that `lacuna guide --mpi` measured."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from lacuna._core import machine_name, mpi_profile_file
from lacuna.files import write_whole
from lacuna.mpi.ways import BYTES, RUNS, Measured, Sheets
from lacuna.worker.result import Result, begun

SCHEMA = "lacuna-mpi-ways/3"


@dataclass
class MpiProfile(Result):
    """The members of the file."""

    machine: str
    library: str
    library_version: str
    ns: Sheets

    def document(self) -> dict[str, object]:
        return {"schema": SCHEMA, "bytes": BYTES, "runs": RUNS, **vars(self)}

    def text(self) -> str:
        """Of the file: a list of numbers is a line."""
        lists = re.compile(r"\[[-+.\deE,\s]+\]")
        said = json.dumps(self.document(), indent=1)
        return lists.sub(lambda found: " ".join(found[0].split()), said) + "\n"

    def store(self) -> Path:
        """Writes it to where the library looks for it. Returns the file."""
        file = Path(mpi_profile_file(self.library))
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, self.text())
        return file


def of(measured: Measured, command: str) -> MpiProfile:
    """Of this machine, now."""
    return begun(MpiProfile, command, machine_name(), measured.library, measured.library_version, measured.ns)
