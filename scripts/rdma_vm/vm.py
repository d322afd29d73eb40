#!/usr/bin/env python3
"""Boots a virtual machine with Debian's kernel and its RDMA driver in software (Soft-RoCE), and runs a command in it.

    scripts/rdma_vm/vm.py [--memory MIB] [--cpus N] [--timeout SECONDS] [--results FOLDER] COMMAND [ARGUMENT...]

The guest sees the host's files and cannot change them, but for one folder; its device is rxe0. Needs no KVM and no
root, but the Debian packages that `scripts/setup.sh rdma` installs. The kernel is kept in $XDG_CACHE_HOME/lacuna. Exits
as the command does; 124 if the time is over, 125 if there is no machine.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lacuna" / "rdma-vm"
NO_MACHINE = 125
TIME_OVER = 124
ADDRESSES = ("10.77.0.1", "10.77.0.2")
"""Of the guests; one alone has the first."""

OLD_SECONDS = 7 * 86400
"""After which a first file system that nobody made anew is thrown away."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Of the guest's commands."""
MODULES = "virtio_pci virtio_net sch_netem 9pnet_virtio 9p overlay dummy crc32_generic veth ib_uverbs rdma_ucm rdma_rxe"
"""What the guest loads, with all that they need."""
APPLETS = "sh mount mkdir cat insmod echo printf dd reboot chroot ip"
MACHINE = """qemu-system-x86_64 -M pc -accel tcg,thread=multi -cpu max -nodefaults -no-user-config
  -display none -no-reboot -device isa-debug-exit,iobase=0xf4,iosize=0x01
  -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap
  -device virtio-9p-pci,fsdev=host,mount_tag=host
"""
"""Never KVM: where it is offered inside a virtual machine it may hang."""
WORDS = "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off nokaslr no_timer_check random.trust_cpu=on"


class NoMachineError(Exception):
    """Why the machine cannot be started, and what to do."""


def output(*command: str, cwd: Path | None = None) -> str:
    try:
        return subprocess.run(command, check=True, text=True, capture_output=True, cwd=cwd).stdout
    except FileNotFoundError as error:
        raise NoMachineError(f"{command[0]} is missing; scripts/setup.sh rdma installs it") from error
    except subprocess.CalledProcessError as error:
        raise NoMachineError(f"{' '.join(command)}: {error.stderr.strip()}") from error


# --- the kernel -------------------------------------------------------------------------------------------------------


def kernel_package() -> str:
    """The package with today's kernel of this Debian."""
    found = re.search(r"Depends: (linux-image-\S+)", output("apt-cache", "depends", "linux-image-amd64"))
    if found is None:
        raise NoMachineError("apt knows no kernel: `apt-get update` as root")
    return found[1]


def kernel() -> Path:
    """The folder with the kernel's files, and `vmlinux`, unpacked, which boots four seconds sooner."""
    package = kernel_package()
    folder = CACHE / package
    if (folder / "vmlinux").exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        place = Path(scratch)
        print(f"==> downloading {package} (70 MB, once)", flush=True)
        output("apt-get", "download", package, cwd=place)
        (deb,) = place.glob("*.deb")
        output("dpkg-deb", "-x", str(deb), str(place / "files"))
        (image,) = (place / "files" / "boot").glob("vmlinuz-*")
        (place / "files" / "vmlinux").write_bytes(unpacked(image.read_bytes()))
        shutil.rmtree(folder, ignore_errors=True)
        (place / "files").rename(folder)
    return folder


def unpacked(image: bytes) -> bytes:
    """The ELF file in a bzImage (Documentation/x86/boot.rst; offsets count from the end of the set-up)."""
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    elf = lzma.LZMADecompressor().decompress(image[start : start + length])
    if not elf.startswith(b"\x7fELF"):
        raise NoMachineError("the kernel's image holds no ELF file")
    return elf


# --- the first file system --------------------------------------------------------------------------------------------


def modules(kernel_files: Path) -> list[Path]:
    """The module files, each behind what it needs, which its own .modinfo says."""
    known = {path.stem.replace("-", "_"): path for path in (kernel_files / "lib" / "modules").rglob("*.ko")}
    order: list[Path] = []

    def add(name: str) -> None:
        path = known.get(name)
        if path is None or path in order:  # not a module: built in
            return
        found = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for needed in found[1].decode().split(",") if found else []:
            add(needed.replace("-", "_"))
        order.append(path)

    for name in MODULES.split():
        add(name.replace("-", "_"))
    return order


def cpio(files: dict[str, tuple[int, bytes]]) -> bytes:
    """Names with modes and contents as an archive that the kernel unpacks (early-userspace/buffer-format.rst)."""
    archive = bytearray()

    def pad() -> None:
        archive.extend(b"\0" * (-len(archive) % 4))

    for number, (name, (mode, content)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))], 1):
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        archive += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        pad()
        archive += content
        pad()
    return bytes(archive)


def first_files(kernel_files: Path) -> Path:
    init = (HERE / "init.sh").read_bytes()
    busybox = Path(shutil.which("busybox") or "/bin/busybox")
    if not busybox.exists():
        raise NoMachineError("busybox is missing; scripts/setup.sh rdma installs busybox-static")
    digest = hashlib.sha256(init + Path(__file__).read_bytes() + busybox.read_bytes()).hexdigest()[:16]
    made = kernel_files / f"initrd-{digest}"
    if made.exists():
        return made
    folder, program, link = 0o040755, 0o100755, 0o120777
    files: dict[str, tuple[int, bytes]] = dict.fromkeys(["bin", "proc", "sys", "dev", "modules"], (folder, b""))
    files["init"] = (program, init)
    files["bin/busybox"] = (program, busybox.read_bytes())
    files |= {f"bin/{name}": (link, b"busybox") for name in APPLETS.split()}
    order = modules(kernel_files)
    files |= {f"modules/{path.name}": (0o100644, path.read_bytes()) for path in order}
    files["modules/order"] = (0o100644, " ".join(path.stem for path in order).encode())
    for old in kernel_files.glob("initrd-*"):  # another checkout may be booting from its own
        if time.time() - old.stat().st_mtime > OLD_SECONDS:
            old.unlink(missing_ok=True)
    scratch = made.with_suffix(f".{os.getpid()}")
    scratch.write_bytes(cpio(files))
    scratch.rename(made)
    return made


# --- the machine ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cable:
    """One end of a wire between two machines."""

    socket: Path
    end: int
    """0 or 1; end 0 has to be plugged in first."""
    netem: str = ""
    """What the kernel's network emulator does to packets that leave here: loss,1%"""

    @property
    def address(self) -> str:
        return ADDRESSES[self.end]

    def device(self) -> list[str]:
        role = "on" if self.end == 0 else "off"
        wire = f"stream,id=wire,server={role},addr.type=unix,addr.path={self.socket}"
        # romfile: no firmware that would boot from the network
        return ["-netdev", wire, "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0{self.end + 1},romfile="]


class Machine:
    """A machine that runs one command; powered off when the context ends."""

    def __init__(
        self,
        command: list[str],
        memory: int = 1024,
        cpus: int = 2,
        results: Path | None = None,
        cable: Cable | None = None,
        output: int | None = None,
    ) -> None:
        files = kernel()
        initrd = first_files(files)
        number, name = tempfile.mkstemp(suffix=".sh", dir=CACHE)
        os.close(number)
        self._script = Path(name)
        head = f"cd {shlex.quote(str(ROOT))}\nexport HOME=/tmp PATH={PATH}\n"
        self._script.write_text(f"{head}exec {shlex.join(command)}\n")
        words = f"{WORDS} lacuna.run={self._script}"
        machine = shlex.split(MACHINE)
        if results is not None:
            words += f" lacuna.results={results}"
            machine += ["-fsdev", f"local,id=results,path={results},security_model=none"]
            machine += ["-device", "virtio-9p-pci,fsdev=results,mount_tag=results"]
        if cable is not None:
            words += f" lacuna.address={cable.address}"
            words += f" lacuna.netem={cable.netem}" if cable.netem else ""
            machine += cable.device()
        at_terminal = output is None and sys.stdin.isatty()  # Ctrl-C is the guest's then
        machine += ["-smp", str(cpus), "-m", str(memory), "-serial", "mon:stdio" if at_terminal else "stdio"]
        machine += ["-kernel", str(files / "vmlinux"), "-initrd", str(initrd), "-append", words]
        stdin = None if at_terminal else subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(machine, stdin=stdin, stdout=output)
        except FileNotFoundError as error:
            self._script.unlink()
            raise NoMachineError("qemu-system-x86_64 is missing; scripts/setup.sh rdma installs it") from error

    @property
    def output(self) -> IO[bytes]:
        """What its serial line says, if `output` was a pipe."""
        assert self._process.stdout is not None
        return self._process.stdout

    def wait(self, timeout: float) -> int:
        """The command's exit status."""
        try:
            ended = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            print(f"the machine ran for {timeout:.0f} s and was stopped", file=sys.stderr)
            return TIME_OVER
        return (ended - 1) // 2 if ended % 2 == 1 else NO_MACHINE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._script.unlink(missing_ok=True)


def plugged_in(socket: Path, seconds: float = 10) -> None:
    """Waits until the other end of a cable may be plugged in."""
    for _ in range(int(seconds / 0.05)):
        if socket.exists():
            return
        time.sleep(0.05)
    raise NoMachineError(f"no machine listens at {socket}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", type=int, default=1024, metavar="MIB")
    parser.add_argument("--cpus", type=int, default=2, metavar="N")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS")
    parser.add_argument("--results", type=Path, metavar="FOLDER")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("which command?")
    try:
        with Machine(options.command, options.memory, options.cpus, options.results) as machine:
            return machine.wait(options.timeout)
    except NoMachineError as error:
        print(f"lacuna: {error}", file=sys.stderr)
        return NO_MACHINE


if __name__ == "__main__":
    sys.exit(main())
