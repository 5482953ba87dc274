"""Policies that can be fitted: a policy measures a table and becomes a scheme, which makes copies of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sfumato.engines import Engine
from sfumato.policy.document import PolicyDocument
from sfumato.release.fitting import fit, fit_dataframe
from sfumato.release.scheme import TableScheme


@dataclass(frozen=True, eq=False, repr=False)
class Policy(PolicyDocument):
    """A dataset's name, its ladder of levels, and the role of each of its columns.

    Roles: `id` identifies a record, `keep` releases a column unchanged, `drop` leaves it out, `gaussian` adds noise to
    numbers and times, `uniform` replaces categories at random, `rotation` and `projection` map numbers so that
    distances are preserved.

        policy = Policy.loads('''
        dataset = "clinic"
        [levels]
        partner = 0.5
        [columns]
        age = "gaussian"
        ward = { role = "uniform", domain = ["A", "B"] }
        ''')
        scheme = policy.fit(table)
    """

    def fit(
        self,
        table: Any,
        *,
        threads: int | None = None,
        progress: Callable[[int], None] | None = None,
        engine: Engine | None = None,
    ) -> TableScheme:
        """Measure a table, on an engine if one is given, and fix with it the shape of the noise for all levels."""
        return fit(self, table, threads=threads, progress=progress, engine=engine)

    def fit_spark(self, frame: Any) -> TableScheme:
        """Measure a Spark data frame where it is, and fix with it the shape of the noise for all levels."""
        return fit_dataframe(self, frame)
