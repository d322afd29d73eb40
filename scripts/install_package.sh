#!/usr/bin/env bash
# Builds the Python package in build/release, where the rest is built too (only what changed), and installs it into
# .venv. LACUNA_WERROR=OFF: warnings are no errors.
set -euo pipefail
cd "$(dirname "$0")/.."

# c++, as CMake itself would choose.
CXX=${CXX:-c++} .venv/bin/python -m pip install --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall -v \
  -C build-dir=build/release -C build.targets=lacuna_python \
  -C cmake.define.BUILD_SHARED_LIBS=ON -C cmake.define.LACUNA_TESTS=ON -C cmake.define.LACUNA_EXAMPLES=ON \
  -C cmake.define.LACUNA_WERROR="${LACUNA_WERROR:-ON}" .
