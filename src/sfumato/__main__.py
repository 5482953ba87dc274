"""The command line as a module: `python -m sfumato` is the same as `sfumato`."""

from sfumato.cli.main import main

main(prog_name="sfumato")
