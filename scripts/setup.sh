#!/usr/bin/env bash
# Sets up a Debian 12 machine, as far as it is not set up yet.
#   scripts/setup.sh packages            Debian packages, through sudo when not root
#   scripts/setup.sh rdma                those for the virtual machine of `make test-rdma`
#   scripts/setup.sh docs                those for `make docs`
#   scripts/setup.sh arm                 the compiler and the emulator for `make arm`
#   scripts/setup.sh venv FILE...        the virtual environment .venv with the requirements in FILE...
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '==> %s\n' "$*"; }
die() { printf 'lacuna: %s\n' "$*" >&2; exit 1; }

# A Python that can make a virtual environment and compile an extension. Prints its path.
find_python() {
  local python
  for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
    if "$python" - 2>/dev/null <<'EOF'
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(header)))
EOF
    then
      command -v "$python"
      return
    fi
  done
  return 1
}

packages() {
  local wanted=(g++ clang make cmake ninja-build pkg-config
    libfmt-dev libhwy-dev libxxhash-dev libsodium-dev libibverbs-dev libfabric-dev libfftw3-dev liburing-dev nlohmann-json3-dev libgtest-dev libbenchmark-dev)
  find_python >/dev/null || wanted+=(python3 python3-venv python3-dev)
  install "${wanted[@]}"
}

install() {
  local wanted=("$@")
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system; expecting these, by their Debian names: ${wanted[*]}"
    return
  fi
  local missing=() package
  for package in "${wanted[@]}"; do
    [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -eq 0 ]] && return

  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  local by_hand="install them as root and try again: apt-get install ${missing[*]}"
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null || die "missing Debian packages, and neither root nor sudo is here; $by_hand"
    [[ -t 0 ]] || sudo -n true 2>/dev/null || die "missing Debian packages, and sudo asks for a password; $by_hand"
    as_root=(sudo "${as_root[@]}")
  fi
  say "installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -q || say "apt-get update failed; trying with the package lists at hand"
  "${as_root[@]}" apt-get install -o DPkg::Lock::Timeout=600 -y -q --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install the missing Debian packages; $by_hand"
}

make_venv() {
  local python
  python=$(find_python) || die "no usable Python 3.11 or newer (it needs venv, ensurepip and its C headers)"
  if ! .venv/bin/python -c '' 2>/dev/null || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    say "creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
  fi
  local file arguments=()
  for file in "$@"; do arguments+=(-r "$file"); done
  say "installing Python packages ($*)"
  # Without --quiet pip says too much, with it too little: drop what is there already.
  .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off "${arguments[@]}" |
    { grep --line-buffered -v -E '^(Requirement already satisfied|Looking in )' || true; }
}

case "${1:-}" in
  packages) packages ;;
  rdma) install qemu-system-x86 busybox-static ibverbs-providers iproute2 ;;
  docs) install doxygen ;;
  arm) install cmake ninja-build g++-aarch64-linux-gnu qemu-user ;;
  venv) shift; make_venv "$@" ;;
  *) sed -n '2,7s/^# //p' "$0"; exit 2 ;;
esac
