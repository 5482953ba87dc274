"""Command-line interface: every command prints a next step, has `--json`, and shows no traceback for a user's mistake.

`main.py` registers all commands. Commands on a vault are in `vault.py` (datasets, backup, keys), `recipients.py`
(recipients and grants), `release.py` and `audit.py` (ledger, verification, audits, tracing); the other files have
commands on single tables and copies, on surveys, and on the service.
"""

from sfumato.cli.main import main as main
