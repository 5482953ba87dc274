"""Cryptographic keys: the master key, key derivation, addressed random bits, signatures, and the path tree."""
