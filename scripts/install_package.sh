#!/usr/bin/env bash
# Builds the wheel in build/python (only what changed) and installs it into .venv. LACUNA_WERROR=ON: warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."

# c++, as CMake itself would choose: under another name the compiler's cache (ccache) is another.
CXX=${CXX:-c++} SKBUILD_CMAKE_DEFINE="LACUNA_WERROR=${LACUNA_WERROR:-OFF}" \
  .venv/bin/python -m pip install --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall -v .
