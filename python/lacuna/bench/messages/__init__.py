"""`lacuna bench messages`: messages between two processes, through Lacuna and through MPIs."""
