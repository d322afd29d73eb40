"""`lacuna bench methods`: the experiments of the papers behind Lacuna, each beside its finding."""
