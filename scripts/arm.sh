#!/usr/bin/env bash
# Compiles lacuna/base, layout and copy for ARM on a Debian 12 machine of another kind, and runs the tests of layout and
# copy in an emulator: with NEON, and with SVE.
#   scripts/arm.sh                              the whole, into build/arm
#   LACUNA_FUZZ_LAYOUTS=100000 scripts/arm.sh   with more random layouts
# What the machine lacks is a skip with its reason.
set -euo pipefail
cd "$(dirname "$0")/.."

here="$PWD/build/arm"
sysroot="$here/sysroot"
bin="$here/cmake"

say() { printf '==> %s\n' "$*"; }
skip() { say "skipped: $*"; exit 0; }

# The arm64 packages, unpacked where nothing else looks: the machine's own packages stay of one kind.
unpack_libraries() {
  [[ -f "$sysroot/complete" ]] && return
  rm -rf "$here/apt" "$here/packages" "$sysroot"
  mkdir -p "$here/apt/lists/partial" "$here/apt/archives/partial" "$here/packages" "$sysroot"
  : >"$here/apt/status"
  cat >"$here/apt/apt.conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "$(id -un)";
Dir::State "$here/apt";
Dir::State::status "$here/apt/status";
Dir::Cache "$here/apt";
EOF
  export APT_CONFIG="$here/apt/apt.conf"
  apt-get update -q || return
  (cd "$here/packages" && apt-get download -q libfmt-dev libfmt9 libhwy-dev libgtest-dev libxxhash-dev) || return
  local package
  for package in "$here"/packages/*.deb; do dpkg-deb -x "$package" "$sysroot" || return; done
  touch "$sysroot/complete"
}

build() {
  cmake -S cmake/copy_only -B "$bin" -G Ninja --log-level=WARNING --toolchain "$PWD/cmake/aarch64.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DLACUNA_SYSROOT="$sysroot"
  cmake --build "$bin" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
}

# emulated CPU PROGRAM ARGUMENT...
emulated() {
  qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu "$1" "$bin/$2" --gtest_brief=1 "${@:3}"
}

# copies CPU SET FILTER: the tests of copy on that CPU, for which Highway must choose that set.
copies() {
  local log="$here/copy_$1.log"
  say "copy on $1: $2"
  emulated "$1" lacuna_copy_tests --gtest_filter="$3" 2>&1 | tee "$log"
  grep -qx "instruction set: $2" "$log" || { say "Highway did not choose $2"; return 1; }
}

[[ "$(. /etc/os-release 2>/dev/null && echo "${ID:-}${VERSION_ID:-}")" == debian12 ]] || skip "this is not Debian 12"
[[ "$(uname -m)" != aarch64 ]] || skip "this is an ARM machine; make check runs these tests on it"
scripts/setup.sh arm || skip "no cross compiler or no emulator"
unpack_libraries || skip "the arm64 libraries could not be fetched"
say "compiling"
build
say "layout"
emulated cortex-a72 lacuna_layout_tests
# Each set once: on a CPU without SVE the best one is the baseline.
copies cortex-a72 NEON '-EverySet/*/All:*CopyMillion*'
copies a64fx SVE '-EverySet/*/Baseline:*CopyMillion*'
# Vectors of 128 and of 256 bits; the CPU above has 512.
copies max,sve-default-vector-length=16 SVE '*Stream*/All'
copies max,sve-default-vector-length=32 SVE '*Stream*/All'
say "arm: all passed"
