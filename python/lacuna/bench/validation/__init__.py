"""`lacuna guide --validate` and `--check`: what the choice loses against the best way, on random pairs of layouts."""
