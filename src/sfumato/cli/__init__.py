"""The command line: thin. Every command prints a next step, has `--json`, and never shows a traceback for a mistake.

`main.py` names all commands; those about tables and single copies are in `tables.py` and `copies.py`, those about a
vault in `owner.py` (its life), `sharing.py` (its recipients) and `auditing.py` (its history).
"""

from sfumato.cli.main import main as main
