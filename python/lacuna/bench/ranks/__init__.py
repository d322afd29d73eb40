"""`lacuna bench ranks`: jobs of many ranks on one node, with Lacuna preloaded and without."""
