"""Revisions of the database schema, one per file."""
