"""`lacuna bench mpi`: the datatypes of MPIs and programs that use them, with Lacuna preloaded and without."""
