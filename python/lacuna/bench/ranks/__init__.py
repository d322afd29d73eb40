"""`lacuna bench ranks`: jobs of many ranks on one node, with Lacuna preloaded and without."""

HELP = """Measure jobs of many ranks on this machine, with Lacuna preloaded and without.

All ranks send one another blocks with gaps, by MPI_Alltoallw and by MPI_Isend, and verify what comes. Shown are
MPI_Init, both exchanges, and the memory that the node's processes share. More ranks than CPUs are usual here.

\b
Examples:
  lacuna bench ranks --quick
  lacuna bench ranks --ranks 64 --ranks 128 --mpi mpich=/opt/mpich/bin/mpicc
  lacuna bench ranks --json ranks.json

"""
