#!/usr/bin/env bash
# Builds the Python package in build/release, where the rest is built too (only what changed), for one Python.
#   scripts/package.sh PYTHON install|wheel [OPTION...]      what its pip does with the package, and with which options
# LACUNA_WERROR=OFF: warnings are no errors.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1 action=$2
shift 2

# c++, as CMake itself would choose.
CXX=${CXX:-c++} "$python" -m pip "$action" --disable-pip-version-check --no-build-isolation --no-deps "$@" \
  -C build-dir=build/release -C build.targets=lacuna_python \
  -C cmake.define.BUILD_SHARED_LIBS=ON -C cmake.define.LACUNA_TESTS=ON -C cmake.define.LACUNA_EXAMPLES=ON \
  -C cmake.define.LACUNA_WERROR="${LACUNA_WERROR:-ON}" .
