"""The ledger: a tamper-evident log of what was released to whom, in SQLite or PostgreSQL.

The ledger is append-only. Each entry's hash covers the entry before it (a hash chain), and carries a message
authentication code under the vault's master key. Everything a vault knows is recorded by an entry. The present state of
a dataset, a recipient, a grant or a release is the latest entry about it, and the table of subjects only points to that
entry: state and history cannot disagree unnoticed. The correctness of copies never depends on the ledger.
"""
