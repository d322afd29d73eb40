"""MPIs on this machine: which are installed, how they start ranks, and the library that is loaded before them."""
