"""`lacuna bench copy`: copies against loops written by hand, memcpy, a limit and MPIs."""
