# Sourced by scripts/check_install.sh, which has check, expect and the user's programs. The Debian package is installed
# into a root of its own, used there as its users do, and removed.

# dpkg_in ROOT ARGUMENT...: dpkg on a root that holds nothing else. What the package depends on is the machine's, and
# the machine's ldconfig stays out of it: a folder before it on PATH has one that writes down its calls.
dpkg_in() {
  local root=$1
  shift
  mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} "$root"/var/stub
  touch "$root"/var/lib/dpkg/{status,available}
  printf '#!/bin/sh\necho "$DPKG_MAINTSCRIPT_NAME" >>"%s/var/ldconfig"\n' "$root" >"$root/var/stub/ldconfig"
  chmod +x "$root/var/stub/ldconfig"
  PATH=$root/var/stub:$PATH:/usr/sbin:/sbin \
    dpkg --root="$root" --log=/dev/null --force-not-root --force-depends --force-script-chrootless "$@"
}

# files_in ROOT: all but dpkg's own, and folders only if they are empty.
files_in() { (cd "$1" && find . -mindepth 1 -path ./var -prune -o \( ! -type d -o -empty \) -print | sort); }

# same_files DEB ROOT: what the package lists, and nothing else.
same_files() { diff <(dpkg-deb -c "$1" | awk '!/^d/ {print $6}' | sort) <(files_in "$2"); }

# nothing_left ROOT: neither a file, nor a folder, nor an entry of dpkg's.
nothing_left() {
  local left
  left=$(files_in "$1"; dpkg-query --admindir="$1/var/lib/dpkg" -W)
  [[ -z "$left" ]] || { echo "left: $left"; return 1; }
}

# only_ldconfig DEB: its scripts make the linker know its libraries, and run nothing else as root.
only_ldconfig() {
  local scripts script
  scripts=$(dpkg-deb --ctrl-tarfile "$1" | tar -t | sed 's|^\./||; /^$/d' | sort | tr '\n' ' ')
  [[ "$scripts" == "control md5sums postinst postrm shlibs triggers " ]] || { echo "$scripts"; return 1; }
  for script in postinst postrm; do
    ! dpkg-deb --info "$1" "$script" | grep -vxE '|#!/bin/sh|set -e|if \[ "\$1" = "(configure|remove)" \]; then|\s*ldconfig|fi' || return 1
  done
}

# programs_depend DEB PROGRAM: a package of a program that is linked with the library asks for this one.
programs_depend() {
  local raw=$work/deb-raw
  mkdir -p "$raw/debian"
  dpkg-deb -R "$1" "$raw/lacuna"
  printf 'Source: user\n\nPackage: user\nArchitecture: any\n' >"$raw/debian/control"
  (cd "$raw" && dpkg-shlibdeps -Slacuna -O "$2") | grep -E '^shlibs:Depends=.*\blacuna \(>= [0-9.]+\)'
}

# same_version DEB ROOT: what came is what the package's list of changes begins with.
same_version() {
  zcat "$2/usr/share/doc/lacuna/changelog.gz" >"$work/changelog"
  diff <(dpkg-parsechangelog -l "$work/changelog" -S Version) <(dpkg-deb -f "$1" Version)
}

# ldconfig_ran ROOT: once when the package came, once when it went.
ldconfig_ran() { diff <(printf 'postinst\npostrm\n') "$1/var/ldconfig"; }

# preloaded ROOT PROGRAM: two ranks of an Open MPI program that sends a datatype, and what the interposer says of it.
preloaded() {
  local said
  said=$(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LACUNA_MPI_REPORT=1 mpirun.openmpi --oversubscribe -n 2 \
    env LD_PRELOAD="$1/usr/lib/liblacuna_mpi_openmpi.so" "$2" 2>&1) || { echo "$said"; return 1; }
  echo "$said"
  [[ "$said" == *": offered, "* ]]
}

# check_deb_installed DEB: $work, $user and $cxx are those of scripts/check_install.sh.
check_deb_installed() {
  local deb=$1 root=$work/deb-root
  check "deb: its scripts run ldconfig alone" only_ldconfig "$deb" || true
  check "deb: dpkg installs it" dpkg_in "$root" -i "$deb" || return 0
  check "deb: it has its licence" cmp LICENSE "$root/usr/share/doc/lacuna/copyright" || true
  check "deb: it has its list of changes" same_version "$deb" "$root" || true
  check "deb: installed are the files it lists" same_files "$deb" "$root" || true
  check "deb: CMake finds it" cmake -S "$user" -B "$work/deb-cmake" -DCMAKE_PREFIX_PATH="$root/usr" || true
  check "deb: CMake builds with it" cmake --build "$work/deb-cmake" || true
  check "deb: packages of programs will depend on it" programs_depend "$deb" "$work/deb-cmake/program_c" || true
  check "deb: C program runs" expect 8 "$work/deb-cmake/program_c" || true
  # shellcheck disable=SC2046
  check "deb: pkg-config: C++ program builds" "$cxx" -std=c++20 "$user/program.cpp" -o "$work/deb-pc" \
    $(PKG_CONFIG_PATH="$root/usr/lib/pkgconfig" pkg-config --cflags --libs lacuna) || true
  check "deb: lacuna-worker starts" bash -c "'$root/usr/bin/lacuna-worker' --help" || true
  if command -v mpicc.openmpi >/dev/null; then
    check "deb: MPI program builds" mpicc.openmpi -O2 examples/quickstart/strided.c -o "$work/deb-strided" || true
    check "deb: MPI program is preloaded" preloaded "$root" "$work/deb-strided" || true
  else
    echo "SKIP deb: MPI program: there is no mpicc.openmpi (make peers)"
  fi
  check "deb: dpkg removes it" dpkg_in "$root" --purge lacuna || return 0
  check "deb: the linker was told both times" ldconfig_ran "$root" || true
  check "deb: nothing of it is left" nothing_left "$root" || true
}
