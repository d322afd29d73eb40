#!/bin/sh
# Starts a program with LACUNA_TEST_PRELOAD loaded before its MPI on rank 0 alone:  one_rank.sh PROGRAM ARGUMENT...
if [ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ]; then
  export LD_PRELOAD="$LACUNA_TEST_PRELOAD"
fi
exec "$@"
