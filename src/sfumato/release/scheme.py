"""Schemes: a policy fitted to a table, which makes copies of it at any level."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.levels import Level
from sfumato.mechanisms import Mechanism
from sfumato.policy.document import PolicyDocument
from sfumato.release.copying import copy_tables
from sfumato.release.gate import Request, clear
from sfumato.release.layout import TableLayout
from sfumato.release.spark import release_dataframe
from sfumato.release.stream import RecordStream
from sfumato.tables.atomic import write_text
from sfumato.tables.row_order import KEEP, arranged


class TableScheme(TableLayout):
    """A policy with everything fitted: a pure function from (table, level, key) to a copy.

    scheme = policy.fit(table)
    scheme.save("scheme.json")                   # later versions of the table get the same noise
    copy = scheme.release(table, "partner", key)
    """

    def release(self, table: Any, level: Level | float | str, key: Key, *, threads: int | None = None) -> pa.Table:
        """A copy at a level, as a pyarrow table with its manifest."""
        return self.release_levels(table, [level], key, threads=threads)[0]

    def release_levels(
        self, table: Any, levels: Sequence[Level | float | str], key: Key, *, threads: int | None = None
    ) -> list[pa.Table]:
        """Copies at several levels at once, for less than their sum: they share the draws they have in common."""
        requested = [self.policy.ladder.level(level) for level in levels]
        return copy_tables(clear(Request.of(self, self.policy.source(table), key), requested, key), threads=threads)

    def stream(self, level: Level | float | str, key: Key, like: Any) -> RecordStream:
        """A copy of records that arrive one by one or in batches: see `release.stream`.

        `like` is a table with the columns of the records, by which thresholds are judged, or its Arrow schema.
        """
        return RecordStream(self, self.policy.ladder.level(level), key, like)

    def release_spark(self, frame: Any, level: Level | float | str, key: Key, *, like: Any = None) -> Any:
        """A copy of a Spark data frame, or of a streaming one, as such a data frame: see `release.spark`."""
        return release_dataframe(self, frame, level, key, like)

    def arranged(self, table: Any, key: Key) -> pa.Table:
        """The original with its rows in the order that they have in a copy: what an attack is scored against."""
        secret = self.table_key(key)
        return arranged(self.policy.source(table), self.ids, secret, shuffle=self.shuffles, view=self.view)

    def dumps(self) -> str:
        """The scheme as JSON: the policy and what was fitted."""
        fitted = [scheme.state() for scheme in self.schemes]
        return json.dumps({"policy": self.policy.dumps(), "order": self.order, "fitted": fitted})

    def save(self, path: str | Path) -> None:
        """Write the scheme to a file, so that later versions of the table get noise of the same shape."""
        write_text(Path(path), self.dumps())

    @classmethod
    def load(cls, path: str | Path) -> TableScheme:
        """Read a scheme from a file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise ReleaseError(f"the scheme {path} could not be used: {reason}; restore it, or fit it again") from None
        return cls.loads(text, str(path))

    @classmethod
    def loads(cls, text: str, name: str = "") -> TableScheme:
        """Parse a scheme; `name` says in errors where the text is from."""
        try:
            data = json.loads(text)
            json.dumps(data, ensure_ascii=False).encode()  # refuses half of a surrogate pair, which no table can hold
            policy, states, order = PolicyDocument.loads(data["policy"]), data["fitted"], data.get("order", KEEP)
            tree, mechanisms = tree_and_mechanisms(policy)
            schemes = tuple(m.restore(state, tree) for m, state in zip(mechanisms, states, strict=True))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, SfumatoError):
            raise ReleaseError(
                f"the scheme {name} could not be used: it is no scheme, or a damaged one; restore it, or fit it again"
            ) from None
        return cls(policy, mechanisms, schemes, tree, order=order)


def tree_and_mechanisms(policy: PolicyDocument) -> tuple[PathTree, tuple[Mechanism, ...]]:
    """The path tree and the mechanisms of a policy, before any table is measured."""
    return PathTree(policy.ladder, policy.digits), tuple(policy.mechanisms())
