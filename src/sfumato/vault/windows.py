"""Streams into a vault: each window of a stream is appended to a dataset and released, with entries in the ledger.

Spark calls a `Windows` for each micro-batch (`foreachBatch`). After a failure it repeats the last one, with its number:
what was appended or released before is recognised, so that the ledger and the copies are those of an uninterrupted run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.errors import VaultError
from sfumato.tables.source import Source

if TYPE_CHECKING:
    from sfumato.vault.vault import Vault

_KIND = "window"


class Windows:
    """Appends each window of a stream to a dataset, and releases its rows to recipients.

        windows = Windows(vault, "visits", {"lab": "s3://lab/visits-{window}.parquet"})
        events.writeStream.foreachBatch(windows).option("checkpointLocation", "...").start()

    Args:
        vault: the vault.
        dataset: the dataset, which has a first version already, to which the noise was fitted, and an id column.
        outputs: for each recipient, the output of its copies, with `{window}` in its name.

    """

    def __init__(self, vault: Vault, dataset: str, outputs: Mapping[str, str | Path], *, query: str = "stream") -> None:
        for recipient, output in outputs.items():
            if "{window}" not in str(output):
                raise VaultError(f"each window needs an output of its own; write {{window}} in that of {recipient}")
        if not vault.dataset(dataset).scheme.ids:
            raise VaultError(
                f"a stream needs records with ids, by which a repetition is recognised; {dataset} has none"
            )
        self._vault, self._dataset, self._query = vault, dataset, query
        self._outputs = {recipient: str(output) for recipient, output in outputs.items()}

    def __call__(self, frame: Any, number: int) -> None:
        """Process the window that a Spark data frame holds."""
        self.add(frame.toArrow(), number)

    def add(self, table: Any, number: int) -> None:
        """Process a window, given as a table; one that was processed before is left as it is.

        Args:
            table: the new records.
            number: the number of the window, one after the other.

        """
        if number <= self._last():
            return
        rows = self._sorted(table)
        if rows.num_rows:
            entry = self._vault.append(self._dataset, rows)
            for recipient, output in self._outputs.items():
                path = output.format(window=number)
                self._vault.release(recipient, self._dataset, path, since=entry.body["version"] - 1)
        with self._vault.ledger.writing(self._vault.keys()) as writing:
            body = {"window": number, "rows": rows.num_rows}
            writing.append("streamed", _KIND, body, dataset=self._dataset)

    def _sorted(self, table: Any) -> pa.Table:
        """The records in the order of their ids: Spark may repeat a window in another one."""
        current = self._vault.dataset(self._dataset)
        wanted = current.schema.remove_metadata()
        batches = [batch.cast(wanted) for batch in Source.of(table).batches(wanted.names)]
        return pa.Table.from_batches(batches, schema=wanted).sort_by(
            [(name, "ascending") for name in current.scheme.ids]
        )

    def _last(self) -> int:
        """The number of the last window that was processed."""
        with self._vault.ledger.reading(self._vault.keys()) as reading:
            latest = reading.latest(_KIND, self._dataset)
        return -1 if latest is None else int(latest.body["window"])
