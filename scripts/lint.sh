#!/usr/bin/env bash
# All static checks; runs every one and fails if one did. The tools come from PATH (`make lint` puts .venv first).
#   scripts/lint.sh [--jobs N]
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=2
[[ "${1:-}" == --jobs ]] && jobs=$2

failed=()
step() {
  local name=$1 start=$SECONDS
  shift
  echo "==> $name"
  "$@" || failed+=("$name")
  echo "    $((SECONDS - start)) s"
}

format_cpp() {
  local bad
  bad=$(find include lacuna tests tools examples python \( -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.c' \) -print0 |
    xargs -0r clang-format --dry-run -Werror 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:.*error:.*/\1/p' | sort | uniq -c) || true
  [[ -z "$bad" ]] && return
  echo "$bad"
  echo "    make format puts these right"
  return 1
}

tidy() { scripts/tidy.py --jobs "$jobs"; }

# mypy wants the module's stub, which the build makes, beside the sources: check them together in a folder of their own.
types() {
  local stage=build/typecheck site
  site=$(python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  rm -rf "$stage/lacuna"
  mkdir -p "$stage"
  cp -r python/lacuna "$stage/"
  if [[ -f $site/lacuna/_core.pyi ]]; then cp "$site/lacuna/_core.pyi" "$stage/lacuna/"; fi
  mypy --config-file pyproject.toml --cache-dir build/mypy_cache "$stage/lacuna" scripts/*.py scripts/rdma_vm/*.py | sed "s|^$stage/|python/|"
}

step "clang-format" format_cpp
step "ruff check" ruff check .
step "ruff format" ruff format --check .
step "include ladder" python scripts/ladder.py
step "lengths" python scripts/check_lengths.py
step "documentation" python scripts/check_docs.py
step "Python package (mypy wants the types of its module)" env LACUNA_WERROR=ON make package
step "mypy" types
step "tests in one run (pytest collects them)" python -m pytest --collect-only -q -q tests/python
step "clang-tidy" tidy

if [[ ${#failed[@]} -gt 0 ]]; then
  printf -v list '%s, ' "${failed[@]}"
  echo "lint: failed: ${list%, }"
  exit 1
fi
echo "lint: all passed"
