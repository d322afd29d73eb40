#!/usr/bin/env bash
# Makes and checks the wheels: one for CPython 3.11, one for 3.12 and later. `make package` comes before.
#   scripts/wheels.sh            into build/wheels; python3.11 and a later Python must be here, with their C headers
# CMAKE_ARGS in the environment has more options for CMake.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/build/wheels
raw=$out/raw
tools=$PWD/.venv/bin

say() { printf '==> %s\n' "$*"; }

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

# build PYTHON: a wheel into $raw. Every Python uses the folder of `make package`, so that only the module is compiled
# for each. What nanobind found for another Python is forgotten, and scikit-build-core does not learn of the other
# environment: it would clear the folder.
build() {
  rm -f build/release/.skbuild-info.json
  scripts/package.sh "$1" wheel -q --config-settings=cmake.args="-UNB_*;-Unanobind_*" -w "$raw"
}

own=$("$tools/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
versions=(3.11)
[[ $own != 3.11 ]] || versions=(3.12 3.13 3.14)
rm -rf "$raw" "$out"/*.whl
mkdir -p "$raw"
if other=$(find_python "${versions[@]}"); then
  say "building with $other"
  "$out/env-other/bin/python" -c '' 2>/dev/null || "$other" -m venv --clear "$out/env-other"
  "$out/env-other/bin/python" -m pip install -q --disable-pip-version-check -c requirements/constraints.txt nanobind scikit-build-core
  build "$out/env-other/bin/python"
else
  say "skipped: the other wheel: there is no Python ${versions[*]} with its C headers"
fi
say "building with .venv, of Python $own"
build "$tools/python" # the last one, so that build/release is as `make package` left it

# RHEL 9, Ubuntu 22.04 and Debian 12 have glibc 2.34 or a newer one.
say "checking"
PATH=$tools:$PATH auditwheel repair --plat "manylinux_2_34_$(uname -m)" -w "$out" "$raw"/*.whl
for wheel in "$out"/*-abi3-*.whl; do
  [[ ! -f $wheel ]] || "$tools/abi3audit" --strict "$wheel"
done
"$tools/check-wheel-contents" "$out"/*.whl
say "wheels:" "$out"/*.whl
