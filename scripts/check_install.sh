#!/usr/bin/env bash
# Installs the library into a temporary prefix and uses it from outside, as its users will:
#   scripts/check_install.sh [BUILD_DIR]...      default: build/release, and build/python (static) where it exists
# Prints one line for each check, `PASS name`, `FAIL name` or `SKIP name: reason`; exits with 1 if one failed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

builds=("$@")
if [[ ${#builds[@]} -eq 0 ]]; then
  builds=(build/release)
  [[ -f build/python/liblacuna.a ]] && builds+=(build/python)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cxx=${CXX:-c++}
cc=${CC:-cc}
# shellcheck source=scripts/check_deb.sh
source scripts/check_deb.sh

# check NAME COMMAND...: runs it quietly; shows what it printed only if it failed.
check() {
  local name=$1 log=$work/log.$BASHPID
  shift
  if "$@" >"$log" 2>&1; then
    echo "PASS $name"
  else
    echo "FAIL $name"
    sed 's/^/    /' "$log"
    return 1
  fi
}

# has_no_hooks FOLDER: what only tests may have acts in nothing that is installed.
has_no_hooks() {
  ! grep -rl LACUNA_TEST_ "$1"
}

# expect TEXT COMMAND...: runs it and compares what it prints.
expect() {
  local wanted=$1 got
  shift
  got=$("$@") || { echo "$* exits with $?"; return 1; }
  [[ "$got" == "$wanted" ]] || { echo "$* prints '$got' instead of '$wanted'"; return 1; }
}

# The two programs, in a folder of their own so that nothing of the source tree is found by accident.
user=$work/user
mkdir -p "$user"
cat >"$user/program.cpp" <<'EOF'
#include <cstdio>
#include <lacuna.hpp>

int main() try {
  const lacuna::Layout column = lacuna::Layout::vector(8, 1, 8, lacuna::Layout::bytes(1));
  char matrix[64], packed[8];
  for (int i = 0; i < 64; ++i) matrix[i] = static_cast<char>(i);
  lacuna::pack(column, matrix, 0, column.size(), packed);
  lacuna::Guide guide;
  if (guide.choose(column, lacuna::Layout::bytes(8)).latency_us <= 0 || packed[7] != 56) return 1;
  std::printf("%lld\n", static_cast<long long>(column.size()));
  (void)column.slice(7, 2);  // out of its stream
  return 1;
} catch (const lacuna::Error& error) {
  return error.status() == LACUNA_ERR_INVALID_ARGUMENT ? 0 : 1;
}
EOF
cat >"$user/program.c" <<'EOF'
#include <lacuna.h>
#include <stdio.h>

int main(void) {
  lacuna_layout* layout = NULL;
  if (lacuna_layout_bytes(8, &layout) != LACUNA_OK) return 1;
  printf("%lld\n", (long long)lacuna_layout_size(layout));
  lacuna_layout_free(layout);
  return lacuna_layout_bytes(-1, &layout) == LACUNA_ERR_INVALID_ARGUMENT ? 0 : 1;
}
EOF
cat >"$user/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(lacuna 0.2 REQUIRED)
add_executable(program_cxx program.cpp)
target_link_libraries(program_cxx PRIVATE lacuna::lacuna)
add_executable(program_c program.c)
target_link_libraries(program_c PRIVATE lacuna::lacuna)
EOF

check_build() {
  local build=$1 kind=$2
  local prefix=$work/$kind
  check "$kind: install" cmake --install "$build" --prefix "$prefix" --component library || return 0

  local pc
  pc=$(find "$prefix" -name lacuna.pc -printf '%h')
  export PKG_CONFIG_PATH=$pc
  local lib=${pc%/pkgconfig} flags=()
  [[ $kind == static ]] && flags=(--static)

  # Every installed header must stand alone, without the source tree and without third-party headers, under each
  # compiler that is here.
  local header compiler
  while read -r header; do
    for compiler in "$cc" "$cxx" clang clang++; do
      command -v "$compiler" >/dev/null || continue
      [[ $compiler == *++* || $header == *.h ]] || continue
      check "$kind: header $header compiles alone, $compiler" header_alone "$compiler" "$prefix/include" "$header" || true
    done
  done < <(cd "$prefix/include" && find . -type f -printf '%P\n' | sort)
  check "$kind: the layers' own headers are not installed" only_public "$prefix/include" || true
  local libraries
  mapfile -t libraries < <(find "$prefix" -name 'liblacuna*.so' | sort)
  check "$kind: libraries export their own names only" tests/api/exports.sh "${libraries[@]}" || true
  check "$kind: the plug-in for NIXL exports its own names only" tests/api/exports.sh "$lib/lacuna/nixl/libplugin_LACUNA.so" || true
  check "$kind: the plug-in for NIXL finds its libraries" worker_links "$lib/lacuna/nixl/libplugin_LACUNA.so" || true
  check "$kind: headers include no third-party header" no_third_party "$prefix/include" || true
  check "$kind: installed files do not name the source tree" no_source_path "$prefix" || true
  check "$kind: installed files have no hooks of tests" has_no_hooks "$prefix" || true

  check "$kind: find_package: configure" cmake -S "$user" -B "$work/$kind-cmake" -DCMAKE_PREFIX_PATH="$prefix" || true
  check "$kind: find_package: build" cmake --build "$work/$kind-cmake" || true
  check "$kind: find_package: C++ program runs" expect 8 "$work/$kind-cmake/program_cxx" || true

  # shellcheck disable=SC2046
  check "$kind: pkg-config: C++ program builds" "$cxx" -std=c++20 "$user/program.cpp" -o "$work/$kind-pc_cxx" $(pkg-config "${flags[@]}" --cflags --libs lacuna) || true
  check "$kind: pkg-config: C++ program runs" env LD_LIBRARY_PATH="$lib" bash -c "$(declare -f expect); expect 8 '$work/$kind-pc_cxx'" || true

  check "$kind: find_package: C program runs" expect 8 "$work/$kind-cmake/program_c" || true
  # shellcheck disable=SC2046
  check "$kind: pkg-config: C program builds" "$cc" -std=c11 "$user/program.c" -o "$work/$kind-pc_c" $(pkg-config "${flags[@]}" --cflags --libs lacuna) || true
  check "$kind: pkg-config: C program runs" env LD_LIBRARY_PATH="$lib" bash -c "$(declare -f expect); expect 8 '$work/$kind-pc_c'" || true

  if [[ -x $prefix/bin/lacuna-worker ]]; then
    check "$kind: lacuna-worker finds its libraries" worker_links "$prefix/bin/lacuna-worker" || true
  else
    echo "SKIP $kind: lacuna-worker: it is not installed"
  fi
}

# The Debian package, unpacked beside the system: what dpkg would install.
check_deb() {
  local build=$1 tree=$work/deb
  if ! command -v dpkg-deb >/dev/null || ! command -v dpkg-shlibdeps >/dev/null; then
    echo "SKIP deb: there is no dpkg-deb or no dpkg-shlibdeps (Debian: dpkg-dev)"
    return
  fi
  check "deb: cpack makes it" cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/cpack" || return 0
  check "deb: it can be unpacked" dpkg-deb -x "$work"/cpack/lacuna_*.deb "$tree" || return 0
  check "deb: its files have no hooks of tests" has_no_hooks "$tree" || true
  check "deb: it depends on what its files need" depends "$build" "$(dpkg-deb -f "$work"/cpack/lacuna_*.deb Depends)" || true
  local file
  for file in lib/lacuna/nixl/libplugin_LACUNA.so lib/liblacuna_mpi_openmpi.so lib/liblacuna_mpi_mpich.so lib/liblacuna_mpi_abi.so bin/lacuna-worker; do
    check "deb: $file finds its libraries" worker_links "$tree/usr/$file" || true
  done
  check "deb: C++ program builds" "$cxx" -std=c++20 -I"$tree/usr/include" "$user/program.cpp" -o "$work/deb_cxx" -L"$tree/usr/lib" -llacuna || return 0
  check "deb: C++ program runs" env LD_LIBRARY_PATH="$tree/usr/lib" bash -c "$(declare -f expect); expect 8 '$work/deb_cxx'" || true
  check "deb: no path of the source tree in it" no_source_path "$tree" || true
  check_deb_installed "$work"/cpack/lacuna_*.deb
}

# depends BUILD TEXT: on the C library and libgcc_s alone, if the build is self-contained.
depends() {
  local pattern='libfmt.*libsodium'
  grep -q '^LACUNA_SELF_CONTAINED:BOOL=ON$' "$1/CMakeCache.txt" && pattern='^libc6 \(>= [0-9.]+\), libgcc-s1 \(>= [0-9.]+\)$'
  echo "$2"
  [[ $2 =~ $pattern ]]
}

# header_alone COMPILER FOLDER HEADER: those of C are for C++ too, the others for C++20.
header_alone() {
  local language=(-std=c11 -x c)
  [[ $1 == *++* ]] && language=(-std=c++20 -x c++)
  "$1" "${language[@]}" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$2" "$2/$3"
}
# only_public FOLDER: nothing but what include/ has.
only_public() { diff <(cd "$1" && find . -type f | sort) <(cd include && find . -type f | sort); }
no_third_party() { ! grep -rnE '#\s*include\s*[<"](fmt/|xxhash|sodium|nlohmann)' "$1"; }
no_source_path() { ! grep -rlIF "$root" "$1"; }
worker_links() { local out; out=$(ldd "$1"); echo "$out"; [[ "$out" != *"not found"* ]]; }

for build in "${builds[@]}"; do
  if [[ ! -f $build/CMakeCache.txt ]]; then
    echo "FAIL $build: it is not built; run make build" | tee -a "$work/said"
    continue
  fi
  kind=shared
  [[ -f $build/liblacuna.a ]] && kind=static
  deb=
  if [[ $kind == shared ]]; then
    check_deb "$build" >"$work/said.deb" &
    deb=$!
  fi
  check_build "$build" "$kind" | tee -a "$work/said"
  if [[ -n $deb ]]; then
    broke=0
    wait "$deb" || broke=$?
    tee -a "$work/said" <"$work/said.deb"
    [[ $broke -eq 0 ]] || echo "FAIL deb: its checks ended with $broke" | tee -a "$work/said"
  fi
done

failures=$(grep -c '^FAIL' "$work/said" || true)
echo "install check: $failures failed"
[[ $failures -eq 0 ]]
