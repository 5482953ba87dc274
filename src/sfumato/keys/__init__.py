"""The secret and all that is derived from it: keys, addressed bits, and the two degradation paths."""
