"""Releases: fitted schemes, the gate that decides whether a copy may leave, copying, manifests and certificates."""
