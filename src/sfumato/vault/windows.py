"""Streams into a vault: each window of a stream is appended to a dataset and released, with entries in the ledger.

Spark calls a `Windows` for each micro-batch (`foreachBatch`). After a failure it repeats the last one, with its number:
what was appended or released before is recognised, so that the ledger and the copies are those of an uninterrupted run.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.errors import SourceError, VaultError
from sfumato.ledger.reader import Query
from sfumato.tables import content_digest
from sfumato.tables.content_digest import SHA256
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
        offset: is added to the numbers of windows, where a stream begins anew and counts them from 0 again.

    """

    def __init__(self, vault: Vault, dataset: str, outputs: Mapping[str, str | Path], *, offset: int = 0) -> None:
        for recipient, output in outputs.items():
            if _fields(str(output)) != ["window"]:
                raise VaultError(f"each window needs an output of its own; write {{window}} in that of {recipient}")
        if not vault.dataset(dataset).scheme.ids:
            raise VaultError(f"a stream needs records with ids, by which repetitions are found; {dataset} has none")
        self._vault, self._dataset, self._offset = vault, dataset, offset
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
        number += self._offset
        rows = self._sorted(table)
        batches = rows.combine_chunks().to_batches()
        digest = content_digest.of_batches((content_digest.of_batch(one, SHA256) for one in batches), SHA256)
        if self._is_processed(number, digest):
            return
        if rows.num_rows:
            entry = self._vault.append(self._dataset, rows)
            for recipient, output in self._outputs.items():
                path, version = output.format(window=number), entry.body["version"]
                if self._vault.dataset(self._dataset).version != version:
                    raise VaultError(
                        f"somebody else added a version of {self._dataset} while window {number} was processed, and "
                        "its rows would be released with it; let the stream alone append to the dataset"
                    )
                self._vault.release(recipient, self._dataset, path, since=version - 1)
        with self._vault.ledger.writing(self._vault.keys()) as writing:
            body = {"window": number, "rows": rows.num_rows, "digest": digest}
            writing.append("streamed", _KIND, body, dataset=self._dataset)

    def _sorted(self, table: Any) -> pa.Table:
        """The records in the order of their ids: Spark may repeat a window in another one."""
        current = self._vault.dataset(self._dataset)
        source, wanted = Source.of(table), current.schema.remove_metadata()
        for field in wanted:
            if field.name not in source.schema.names:
                raise SourceError(f"each window must have the column {field.name!r}, and this one has not")
        try:
            batches = [batch.cast(wanted) for batch in source.batches(wanted.names)]
        except pa.ArrowException:  # whose text shows values
            raise SourceError(
                f"the columns of each window must have the types of {self._dataset}, and this one has others"
            ) from None
        order = [(name, "ascending") for name in current.scheme.ids]
        return pa.Table.from_batches(batches, schema=wanted).sort_by(order)

    def _is_processed(self, number: int, digest: str) -> bool:
        """Whether this window was processed; refused if another one of its number, or a later one, was."""
        with self._vault.ledger.reading(self._vault.keys()) as reading:
            latest = reading.latest(_KIND, self._dataset)
            if latest is None or number > latest.body["window"]:
                return False
            known = [one.body for one in reading.entries(Query(kind=_KIND, dataset=self._dataset))]
        if any((one["window"], one["digest"]) == (number, digest) for one in known):
            return True
        raise VaultError(
            f"window {number} of {self._dataset} was processed with other rows; if the stream counts from 0 again, "
            f"state `offset={latest.body['window'] + 1}`"
        )


def _fields(output: str) -> list[str]:
    """The fields in braces of an output's name."""
    try:
        return [name + (spec or "") for _, name, spec, _ in string.Formatter().parse(output) if name is not None]
    except ValueError:
        return []
