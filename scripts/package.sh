#!/usr/bin/env bash
# Builds the Python package in build/release, where the rest is built too (only what changed), for one Python.
#   scripts/package.sh PYTHON install|wheel [OPTION...]      what its pip does with the package, and with which options
# LACUNA_WERROR=OFF: warnings are no errors.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1 action=$2
shift 2

settings=(build-dir=build/release build.targets=lacuna_python)
for define in BUILD_SHARED_LIBS=ON LACUNA_TESTS=ON LACUNA_EXAMPLES=ON LACUNA_WERROR="${LACUNA_WERROR:-ON}"; do
  settings+=("cmake.define.$define")
done
# c++, as CMake itself would choose.
CXX=${CXX:-c++} "$python" -m pip "$action" --disable-pip-version-check --no-build-isolation --no-deps "$@" \
  "${settings[@]/#/--config-settings=}" .
