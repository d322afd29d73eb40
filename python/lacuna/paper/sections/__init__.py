"""The findings of the papers and reports behind Lacuna, one module for each group of them."""
