"""UNSAFE, for comparison only: independent noise, whose copies are perturbed independently of each other.

Each copy alone is as good as a safe one, but colluding recipients undo the noise: the error of `M` numeric
copies falls to `1/(1+Σ1/σi²)` (li2012, Theorem 3), and a category that shows in several copies is almost surely the
true one (xiao2009, Figure 1).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.errors import PolicyError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.levels import Level
from sfumato.mechanisms import MECHANISMS, Example, Mechanism, Scheme, Summary
from sfumato.models import Model

_IMITATED = ("gaussian", "uniform")


@dataclass(frozen=True)
class Independent(Mechanism):
    """Another mechanism, with a key of its own for every level: the option `of` says which."""

    reference = "li2012, section 4.2.1 (the false start) and Theorem 3; xiao2009, section 1.1"
    options = frozenset({"of", "clip", "scale", "spread", "integer", "domain", "nulls", "joint"})
    safe = False
    examples = (Example("numbers", 1, {"of": "gaussian"}), Example("categories", 1, {"of": "uniform"}))
    passes = 2
    inner: Mechanism

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inner.columns

    @classmethod
    def of(cls, columns: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> Sequence[Mechanism]:  # noqa: ARG003
        out: list[Mechanism] = []
        for imitated in _IMITATED:
            chosen = {name: options for name, options in columns.items() if options.get("of") == imitated}
            mechanism = MECHANISMS[imitated]
            plain = {name: {key: v for key, v in options.items() if key != "of"} for name, options in chosen.items()}
            for name, options in plain.items():
                unknown = set(options) - mechanism.options
                if unknown:
                    raise PolicyError(f"column {name!r}, independent of {imitated}, cannot have {sorted(unknown)}")
            out += [cls(inner) for inner in mechanism.of(plain, {})]
        missing = set(columns) - {name for mechanism in out for name in mechanism.columns}
        if missing:
            raise PolicyError(
                f"the role independent needs `of`, one of {', '.join(_IMITATED)}, in column {min(missing)!r}"
            )
        return out

    def check(self, schema: pa.Schema) -> None:
        self.inner.check(schema)

    def summarise(self, batch: pa.RecordBatch, earlier: Summary | None = None) -> Summary:
        return self.inner.summarise(batch, earlier if self.inner.passes > 1 else None)

    def fit(self, summary: Summary, tree: PathTree) -> Scheme:
        return IndependentScheme(self.inner.fit(summary, tree), tree)

    def restore(self, state: dict[str, Any], tree: PathTree) -> Scheme:
        return IndependentScheme(self.inner.restore(state, tree), tree)


class IndependentScheme(Scheme):
    """A scheme whose levels are independent of each other."""

    def __init__(self, inner: Scheme, tree: PathTree) -> None:
        self.inner, self._tree = inner, tree
        self.columns, self.is_shaped = inner.columns, inner.is_shaped

    def fields(self, schema: pa.Schema) -> list[pa.Field]:
        return self.inner.fields(schema)

    def state(self) -> dict[str, Any]:
        return self.inner.state()

    def model(self, level: Level) -> Model:
        return dataclasses.replace(self.inner.model(level), collusion_resistant=False)  # type: ignore[call-arg]

    def draws(self, batch: pa.RecordBatch, rows: Words, key: Key) -> Words:
        return self.inner.draws(batch, rows, key)

    def drift(self, later: Scheme) -> float:
        return self.inner.drift(later.inner) if isinstance(later, IndependentScheme) else math.inf

    def perturb_levels(
        self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key
    ) -> list[list[pa.Array]]:
        own = [key.derive("independent", repr(self._tree.locate(level).level.fidelity)) for level in levels]
        return [self.inner.perturb(batch, rows, level, secret) for level, secret in zip(levels, own, strict=True)]
