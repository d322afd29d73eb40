"""What can be seen of a machine and of an MPI program before the program runs."""
