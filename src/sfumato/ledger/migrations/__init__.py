"""Alembic migrations of the ledger, run by `ledger.database`."""
