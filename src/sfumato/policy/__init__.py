"""Policies: what an owner states about a dataset: its levels, the role of each column, and risk targets."""
