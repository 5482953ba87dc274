"""The ledger: what was given to whom. Append-only, hash-collusion_resistant and keyed, in SQLite or PostgreSQL.

Everything a vault knows is said by an entry. The present state of a dataset, a recipient, a grant or a release is the
latest entry about it, and the table of subjects only points there: state and history cannot disagree unnoticed.
Correctness of copies never depends on any of this.
"""
