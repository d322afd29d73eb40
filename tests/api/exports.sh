#!/usr/bin/env bash
# What libraries export is what they say:
#   tests/api/exports.sh LIBRARY...
# liblacuna has all functions of lacuna.h and nothing else; an interposer has MPI's names, lacuna_mpi_force_way()
# and lacuna_mpi_host_function() for what measures, and dlsym, by which a program may ask for them; the plug-in for NIXL
# has the two functions that NIXL looks up.
set -euo pipefail
headers=$(dirname "$0")/../../include/lacuna

failed=0
for library in "$@"; do
  exported=$(nm -D --defined-only "$library" | awk '{sub(/@.*/, "", $NF); print $NF}' | sort -u)
  case $(basename "$library") in
    liblacuna_mpi_*) allowed='^(P?MPIX?_[A-Za-z0-9_]+|dlsym|lacuna_mpi_force_way|lacuna_mpi_line_ns|lacuna_mpi_host_function)$' wanted='MPI_Send' ;;
    libplugin_*) allowed='^nixl_plugin_(init|fini)$' wanted='nixl_plugin_init' ;;
    *) allowed='^lacuna_[a-z0-9_]+$' wanted=$(grep -ohE '\blacuna_[a-z0-9_]+\(' "$headers"/*.h | tr -d '(' | sort -u) ;;
  esac
  if other=$(grep -vE "$allowed" <<<"$exported"); then
    echo "$library exports what is not its own:"
    head -n 20 <<<"$other"
    failed=1
  fi
  if missing=$(comm -13 <(echo "$exported") <(echo "$wanted") | grep .); then
    echo "$library lacks:" $missing
    failed=1
  fi
done
exit $failed
