"""What `lacuna mpi doctor` says of machines and programs. The programs ask for an MPI that is none: a library of its
name, so that no MPI is needed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lacuna.cli.app import app
from lacuna.mpi.inspection import doctor
from lacuna.mpi.inspection.doctor import Verdict
from lacuna.mpi.interposer import preload_library, tools_behind

CALLS = ("Init", "Send", "Type_vector", "Ialltoallw", "Put", "File_write_all", "Barrier")
C = "".join(f"int MPI_{name}(void);\n" for name in CALLS) + "int main(void) { return %s; }\n"
ALL = " + ".join(f"MPI_{name}()" for name in CALLS)


def compile_c(text: str, built: Path, *options: str) -> Path:
    source = built.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["cc", "-w", str(source), "-o", str(built), *options], check=True, capture_output=True)
    return built


def library(folder: Path, name: str = "libmpi.so.40") -> Path:
    text = "".join(f"int MPI_{call}(void) {{ return 0; }}\n" for call in CALLS)
    text += "int mpi_send_(void) { return 0; }\nint mpi_bcast_f08ts_(void) { return 0; }\n"
    return compile_c(text, folder / name, "-shared", "-fPIC", f"-Wl,-soname,{name}")


def program(folder: Path, text: str = C % ALL, name: str = "libmpi.so.40") -> Path:
    return compile_c(text, folder / "app", str(library(folder, name)), f"-Wl,-rpath,{folder}")


def said(file: Path, chosen: str | None = "openmpi") -> dict[str, tuple[Verdict, str]]:
    read = doctor.read_program(file)
    assert read is not None
    return {finding.what: (finding.verdict, finding.text) for finding in doctor.look_at_program(read, chosen)}


def test_a_program_and_what_is_taken_of_it(tmp_path: Path) -> None:
    found = said(program(tmp_path))
    assert found["program"] == (Verdict.OK, f"{tmp_path / 'app'}, built for Open MPI 4.1 and 5")
    assert found["datatypes with gaps"] == (Verdict.OK, "made by type_vector")
    assert found["messages"] == (Verdict.OK, "taken (send)")
    assert found["collectives"][0] is Verdict.OK
    assert "ialltoallw" in found["collectives"][1]
    assert found["files"] == (Verdict.NOTE, "left to the MPI (file_write_all)")
    assert found["MPI_Put and MPI_Get"][0] is Verdict.OK
    assert "one-sided communication" not in found


def test_fortran_names_are_those_of_the_calls(tmp_path: Path) -> None:
    text = "int mpi_send_(void); int mpi_bcast_f08ts_(void);\n"
    text += "int main(void) { return mpi_send_() + mpi_bcast_f08ts_(); }\n"
    found = said(program(tmp_path, text))
    assert found["messages"] == (Verdict.OK, "taken (send)")
    assert "(bcast)" in found["collectives"][1]
    assert found["datatypes with gaps"][0] is Verdict.NOTE


def test_an_mpi_that_a_library_of_the_program_asks_for(tmp_path: Path) -> None:
    mpi = library(tmp_path)
    own = compile_c("int MPI_Send(void);\nint solve(void) { return MPI_Send(); }\n", tmp_path / "libown.so", "-shared",
                    "-fPIC", str(mpi), f"-Wl,-rpath,{tmp_path}")  # fmt: skip
    built = compile_c("int solve(void);\nint main(void) { return solve(); }\n", tmp_path / "app", str(own),
                      f"-Wl,-rpath,{tmp_path}", "-Wl,--allow-shlib-undefined")  # fmt: skip
    assert said(built)["program"][0] is Verdict.OK


@pytest.mark.parametrize(
    ("name", "chosen", "verdict"),
    [
        ("libmpi.so.40", "mpich", Verdict.WRONG),
        ("libmpi.so.12", "openmpi", Verdict.WRONG),
        ("libmpi.so.12", "mpich", Verdict.OK),
        ("libmpi_abi.so.1", "abi", Verdict.OK),
        ("libmpi_abi.so.1", "mpich", Verdict.NOTE),
        ("libmpi.so.40", None, Verdict.OK),
    ],
)
def test_programs_for_another_mpi_than_the_launcher(
    tmp_path: Path, name: str, chosen: str | None, verdict: Verdict
) -> None:
    assert said(program(tmp_path, name=name), chosen)["program"][0] is verdict


def test_programs_that_nothing_can_be_loaded_into(tmp_path: Path) -> None:
    static = compile_c("int main(void) { return 0; }\n", tmp_path / "static", "-static")
    assert said(static)["program"][0] is Verdict.WRONG
    own = "".join(f"int MPI_{call}(void) {{ return 0; }}\n" for call in CALLS)
    inside = compile_c(own + f"int main(void) {{ return {ALL}; }}\n", tmp_path / "inside", "-rdynamic")
    verdict, text = said(inside)["program"]
    assert verdict is Verdict.WRONG
    assert text.startswith(f"{inside} has its MPI in itself: nothing can be preloaded; link it")
    setuid = program(tmp_path)
    setuid.chmod(0o4755)
    read = doctor.read_program(setuid)
    assert read is not None
    assert any("setuid" in f.text for f in doctor.look_at_program(read, None) if f.verdict is Verdict.WRONG)


def test_programs_without_an_mpi_of_their_own(tmp_path: Path) -> None:
    plain = compile_c("int main(void) { return 0; }\n", tmp_path / "plain")
    assert said(plain)["program"][0] is Verdict.NOTE
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nexec ./app\n")
    (finding,) = doctor.look_at_file(script, None, "openmpi")
    assert finding.verdict is Verdict.NOTE
    assert "script" in finding.text


def test_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scope, devices = tmp_path / "scope", tmp_path / "infiniband"
    monkeypatch.setattr(doctor, "PTRACE_SCOPE", scope)
    monkeypatch.setattr(doctor, "DEVICES", devices)

    def look() -> dict[str, tuple[Verdict, str]]:
        return {f.what: (f.verdict, f.text) for f in doctor.look_at_machine(None, "openmpi")}

    monkeypatch.delenv("LACUNA_MPI_NIC", raising=False)
    found = look()
    assert found["shared memory"][0] is Verdict.OK
    assert found["direct copies"][0] is Verdict.OK
    assert "no RDMA device" in found["other nodes"][1]
    scope.write_text("1\n")
    (devices / "mlx5_0").mkdir(parents=True)
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    found = look()
    assert found["direct copies"][0] is Verdict.NOTE
    assert "ptrace_scope=0" in found["direct copies"][1]
    assert found["other nodes"][0] is Verdict.OK
    assert "mlx5_0" in found["other nodes"][1]
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (8 << 20, 8 << 20))
    assert look()["other nodes"][0] is Verdict.NOTE
    monkeypatch.setenv("LACUNA_MPI_NIC", "ofi:tcp;ofi_rxm")
    assert "libfabric's tcp;ofi_rxm" in look()["other nodes"][1]
    monkeypatch.setenv("LACUNA_MPI_NIC", "ofi")
    assert "libfabric's first provider" in look()["other nodes"][1]
    monkeypatch.setenv("LACUNA_MPI_NIC", "off")
    assert look()["other nodes"] == (Verdict.OK, "LACUNA_MPI_NIC=off: the MPI moves data with gaps in chunks")


def test_the_command(tmp_path: Path) -> None:
    runner = CliRunner()
    environment = {"LACUNA_MPI_LIB_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    for abi in ("openmpi", "mpich"):
        (tmp_path / f"liblacuna_mpi_{abi}.so").touch()
    good = runner.invoke(
        app, ["mpi", "doctor", "--abi", "openmpi", "--json", "-", str(program(tmp_path))], env=environment
    )
    assert good.exit_code == 0, good.output
    findings = json.loads(good.stdout)
    assert (findings[0]["what"], findings[0]["verdict"]) == ("gain", "ok")
    shown = runner.invoke(app, ["mpi", "doctor", "--abi", "openmpi", str(tmp_path / "app")], env=environment)
    assert shown.output.splitlines()[0] == f"{findings[0]['text']}."
    assert {"what": "program", "verdict": "ok", "text": f"{tmp_path / 'app'}, built for Open MPI 4.1 and 5"} in findings
    wrong = runner.invoke(app, ["mpi", "doctor", "--abi", "mpich", str(tmp_path / "app")], env=environment)
    assert wrong.exit_code == 1
    assert "does not gain" in wrong.output.splitlines()[0]
    assert "built for Open MPI" in wrong.output.splitlines()[0]
    missing = runner.invoke(app, ["mpi", "doctor", "--abi", "openmpi", str(tmp_path / "nothing")], env=environment)
    assert missing.exit_code == 2


def calls(folder: Path, *names: str) -> Path:
    """A program that calls these."""
    declared = "".join(f"int MPI_{name}(void);\n" for name in names)
    return program(folder, declared + f"int main(void) {{ return {' + '.join(f'MPI_{name}()' for name in names)}; }}\n")


@pytest.mark.parametrize(
    ("names", "verdict", "said"),
    [
        (("Type_vector", "Send"), Verdict.OK, "./app should gain here"),
        (("Type_vector", "Ialltoallw"), Verdict.OK, "`lacuna mpirun -n 2 ./app`"),
        (("Type_vector", "File_write_all"), Verdict.NOTE, "the MPI keeps all calls that the program passes"),
        (("Send",), Verdict.NOTE, "Sending such datatypes"),
    ],
)
def test_the_first_line_is_whether_a_program_gains(
    tmp_path: Path, names: tuple[str, ...], verdict: Verdict, said: str
) -> None:
    read = doctor.read_program(calls(tmp_path, *names))
    assert read is not None
    found = doctor.gain(doctor.look_at_program(read, "openmpi"), "./app")
    assert (found.what, found.verdict) == ("gain", verdict)
    assert said in found.text


def test_the_first_line_says_what_keeps_it_from_gaining(tmp_path: Path) -> None:
    read = doctor.read_program(calls(tmp_path, "Type_vector", "Send"))
    assert read is not None
    of_program = doctor.look_at_program(read, "openmpi")
    fine = doctor.Finding("direct copies", Verdict.OK, "fine")
    slower = doctor.Finding("direct copies", Verdict.NOTE, "forbidden")
    assert "less than it could" not in doctor.gain([fine, *of_program], "./app").text
    assert "less than it could, see direct copies" in doctor.gain([slower, *of_program], "./app").text
    missing = doctor.Finding("launcher", Verdict.WRONG, "no MPI was found: install one")
    found = doctor.gain([missing, *of_program], "./app")
    assert (found.verdict, found.text) == (Verdict.WRONG, "./app does not gain here: no MPI was found: install one")
    assert "No MPI program gains here" in doctor.gain([missing], None).text
    assert "`lacuna mpi demo`" in doctor.gain([fine], None).text


def test_the_first_line_of_what_its_file_does_not_say(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nexec ./app\n")
    for file in (script, Path("/bin/true")):
        found = doctor.gain(doctor.look_at_file(file, None, "openmpi"), str(file))
        assert found.verdict is Verdict.NOTE
        assert f"LACUNA_MPI_REPORT=1 lacuna mpirun -n 2 {file}" in found.text


def test_says_what_gpus_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def gpus() -> tuple[Verdict, str]:
        return next((f.verdict, f.text) for f in doctor.look_at_machine(None, "openmpi") if f.what == "GPUs")

    card = {"name": "cuda:0", "model": "NVIDIA H200", "driver": "13.0"}
    monkeypatch.setattr("lacuna.device.cards", lambda: [card])
    text = "cuda:0 (NVIDIA H200, CUDA 13.0): lacuna.device moves layouts of their memory; messages do not yet"
    assert gpus() == (Verdict.NOTE, text)

    def none() -> list[dict[str, str]]:
        raise ValueError("unsupported: GPUs need NVIDIA's driver")

    monkeypatch.setattr("lacuna.device.cards", none)
    assert gpus() == (Verdict.OK, "none: GPUs need NVIDIA's driver")


def test_the_doctor_names_what_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("tool", "int MPI_Send(void) { return 0; }"), ("other", "int send(void) { return 0; }")):
        (tmp_path / f"{name}.c").write_text(text)
        line = ["cc", "-w", "-shared", "-fPIC", str(tmp_path / f"{name}.c"), "-o", str(tmp_path / f"lib{name}.so")]
        subprocess.run(line, check=True, capture_output=True)
    tool, other, ours = tmp_path / "libtool.so", tmp_path / "libother.so", preload_library("mpich")
    assert tools_behind(f"{ours}:{other}:{tool}") == [str(tool)]
    assert tools_behind(f"{tool}:{other}:{ours}") == []
    assert tools_behind(f"{tool}") == []
    monkeypatch.setenv("LD_PRELOAD", f"{ours}:{tool}")
    said = [finding for finding in doctor.look_at_machine(None, "mpich") if finding.what == "tools"]
    assert [finding.verdict for finding in said] == [doctor.Verdict.NOTE]
    assert str(tool) in said[0].text
