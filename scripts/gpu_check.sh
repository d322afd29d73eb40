#!/usr/bin/env bash
# Checks Lacuna on a machine with a GPU, CUDA and PyTorch, but without a network and without the Debian packages that
# building needs.
#   scripts/gpu_check.sh bundle [DIR]    here: collects what was built, and the libraries that it needs, into DIR
#                                        (build/gpu)
#   scripts/gpu_check.sh run [DIR]       there: tests, compute-sanitizer, benches; results go to $OUT, or DIR/results
# Carry DIR to the machine together with the sources, or by itself: it holds this script.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"

say() { printf '==> %s\n' "$*"; }

# The shared libraries of a program that a machine may lack: all but the C library's own.
needed() {
  ldd "$1" | awk '$3 ~ /^\// {print $3}' | grep -v -E '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' || true
}

bundle() {
  local into="${1:-build/gpu}" bin="$here/../build/release/bin" program
  rm -rf "$into"
  mkdir -p "$into/bin" "$into/lib"
  for program in lacuna_device_tests lacuna-device-bench; do
    cp "$bin/$program" "$into/bin/"
    strip "$into/bin/$program"
    needed "$bin/$program" | xargs -I{} cp -L {} "$into/lib/"
  done
  cp -L "$bin"/../liblacuna.so.?.? "$into/lib/"  # for torch_check.py
  needed "$bin/../liblacuna.so" | xargs -I{} cp -L {} "$into/lib/"
  cp "$here/gpu_check.sh" "$here/../python/lacuna/bench/device/array_libraries.py" "$here/../tests/gpu/torch_check.py" "$into/"
  say "$into: $(du -sh "$into" | cut -f1)"
}

run() {
  local dir="${1:-$here}" results
  results="${OUT:-$dir/results}"
  mkdir -p "$results"
  export LD_LIBRARY_PATH="$dir/lib:${LD_LIBRARY_PATH:-}" LACUNA_TEST_DEVICE=cuda:0 LACUNA_TIER=all
  local failed=0 few='DevicePlan.Runs:DevicePlan.Nests:DevicePlan.BlocksOfAnyLength:DevicePlan.Permutations:DevicePlan.ManyLayoutsInOneLaunch'
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
  say "tests"
  timeout 60 "$dir/bin/lacuna_device_tests" --gtest_brief=1 >"$results/tests.log" 2>&1 || failed=1
  tail -n 3 "$results/tests.log"
  say "torch: streams, graphs, types"
  timeout 60 python3 "$dir/torch_check.py" "$dir"/lib/liblacuna.so.* | tee "$results/torch.log" || failed=1
  local tool
  for tool in memcheck racecheck; do
    if command -v compute-sanitizer >/dev/null; then
      say "compute-sanitizer $tool"
      timeout 45 compute-sanitizer --tool "$tool" --error-exitcode 9 "$dir/bin/lacuna_device_tests" --gtest_brief=1 \
        --gtest_filter="$few" >"$results/$tool.log" 2>&1 || failed=1
      tail -n 1 "$results/$tool.log"
    else
      say "compute-sanitizer is not here: skipped"
    fi
  done
  say "bench"
  timeout 180 "$dir/bin/lacuna-device-bench" --seconds 150 >"$results/bench.jsonl" || failed=1
  say "arrays: torch and CuPy"
  timeout 90 python3 "$dir/array_libraries.py" "$results/bench.jsonl" >"$results/arrays.jsonl" || failed=1
  return "$failed"
}

case "${1:-}" in
  bundle) shift; bundle "$@" ;;
  run) shift; run "$@" ;;
  *) sed -n '2,5s/^# //p' "$0"; exit 2 ;;
esac
