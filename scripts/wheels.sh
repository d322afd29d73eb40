#!/usr/bin/env bash
# Builds and checks the wheels: one for CPython 3.11, one for 3.12 and later.
#   scripts/wheels.sh            into build/wheels; python3.11 and a later Python must be here, with their C headers
# CMAKE_ARGS in the environment has more options for CMake.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/build/wheels
raw=$out/raw
checks=$out/env-3.11/bin

say() { printf '==> %s\n' "$*"; }
die() { printf 'lacuna: %s\n' "$*" >&2; exit 1; }

# find_python VERSION...: the first that is here and can compile an extension, on the PATH or of pyenv. Prints its path.
find_python() {
  local version python
  for version in "$@"; do
    for python in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
      if "$python" -c 'import ensurepip, os, sys, sysconfig, venv
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2>/dev/null; then
        "$python" -c 'import sys; print(sys.executable)'
        return
      fi
    done
  done
  return 1
}

# make_venv PYTHON FOLDER REQUIREMENTS...: an environment that has them.
make_venv() {
  local python=$1 folder=$2 file arguments=()
  shift 2
  "$folder/bin/python" -c '' 2>/dev/null || "$python" -m venv --clear "$folder"
  for file in "$@"; do arguments+=(-r "$file"); done
  "$folder/bin/python" -m pip install -q --disable-pip-version-check "${arguments[@]}"
}

# build VENV: a wheel into $raw. Both are made in one folder of CMake, so that all but the Python module is compiled
# once. For the same reason the headers of CUDA come from one place, and scikit-build-core does not learn that another
# environment used the folder: it would clear it. What nanobind found for the other Python is forgotten.
build() {
  rm -f "$out/cmake/.skbuild-info.json"
  PYTHONPATH=$out/cuda CXX=${CXX:-c++} "$1/bin/python" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps \
    -C build-dir=build/wheels/cmake -C cmake.args="-UNB_*;-Unanobind_*" -w "$raw" .
}

python311=$(find_python 3.11) || die "there is no Python 3.11 with its C headers"
later=$(find_python 3.12 3.13 3.14) || say "skipped: the wheel for 3.12 and later: there is no such Python with its C headers"
rm -rf "$raw" "$out"/*.whl
mkdir -p "$raw" "$out/cuda"
say "setting up $python311 ${later:+and $later}"
make_venv "$python311" "$out/env-3.11" requirements/build.txt requirements/wheel.txt
[[ -z $later ]] || make_venv "$later" "$out/env-later" requirements/build.txt
ln -sfn "$out/env-3.11/lib/python3.11/site-packages/nvidia" "$out/cuda/nvidia"

say "building"
build "$out/env-3.11"
[[ -z $later ]] || build "$out/env-later"

# RHEL 9, Ubuntu 22.04 and Debian 12 have glibc 2.34 or a newer one.
say "checking"
PATH=$checks:$PATH auditwheel repair --plat "manylinux_2_34_$(uname -m)" -w "$out" "$raw"/*.whl
[[ -z $later ]] || "$checks/abi3audit" --strict "$out"/*-abi3-*.whl
"$checks/check-wheel-contents" "$out"/*.whl
say "wheels:" "$out"/*.whl
