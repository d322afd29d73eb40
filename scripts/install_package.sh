#!/usr/bin/env bash
# Builds the wheel in build/python (only what changed) and installs it into .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/python -m pip install --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall -v .
