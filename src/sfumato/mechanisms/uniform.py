"""Uniform perturbation of categories, at any number of levels on one replacement process (xiao2009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa
from pyarrow import types

from sfumato.errors import PolicyError, SourceError
from sfumato.keys.path import PathTree
from sfumato.mechanisms import Example, Mechanism, Scheme, Summary, number
from sfumato.mechanisms._entity_rows import ENTITY_ROWS, EntityRows, entity_hashes
from sfumato.mechanisms._uniform_scheme import UniformScheme
from sfumato.tables.domain import LARGEST, MISSING, OBSERVED, Domain, is_category, is_number, observed, refuse_free_text


@dataclass(frozen=True)
class Column:
    """What the policy states about one column."""

    name: str
    domain: Domain | None = None
    accepted: bool = False
    """Whether the policy says that all values that occur may be published."""
    scale: float = 1.0
    perturbs_null: bool = False
    joint: str | None = None
    unseen: Any = None
    """What a value outside of the domain counts as: one of it, or missing; without one it is refused."""

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any]) -> Column:
        """The column with the options of a policy."""
        domain, nulls, joint = options.get("domain", OBSERVED), options.get("nulls", "keep"), options.get("joint")
        if nulls not in ("keep", "perturb"):
            raise PolicyError(f"`nulls` of column {name!r} must be 'keep' or 'perturb', got {nulls!r}")
        if joint is not None and not isinstance(joint, str):
            raise PolicyError(f"`joint` of column {name!r} must be the name of its group, got {joint!r}")
        if "bins" in options and "domain" in options:
            raise PolicyError(f"column {name!r} must have `bins` or a `domain`, and has both")
        stated = None if domain == OBSERVED else Domain.declared(name, domain)
        return cls(
            name,
            accepted=options.get("domain") == OBSERVED,
            domain=Domain.binned(name, options["bins"]) if "bins" in options else stated,
            scale=number(name, "scale", options.get("scale", 1.0), above=0),
            perturbs_null=nulls == "perturb",
            joint=joint,
            unseen=_rule(name, options),
        )


def _rule(name: str, options: Mapping[str, Any]) -> Any:
    stated = options.get("unseen")
    if "bins" in options and stated is not None:
        raise PolicyError(f"every number is in a bin, so that `unseen` of column {name!r} must be left out")
    if stated is not None and (isinstance(stated, bool) or not isinstance(stated, str | int)):
        raise PolicyError(f"`unseen` of column {name!r} must be {MISSING!r} or a value of its domain, got {stated!r}")
    return stated


@dataclass(frozen=True)
class Observed(Summary):
    """The distinct values of each column whose domain the policy does not state."""

    values: tuple[frozenset[Any], ...]
    rows: int
    entities: EntityRows | None = None

    def merge(self, other: Self) -> Self:
        both = self.entities and other.entities and self.entities.merge(other.entities)
        return type(self)(
            tuple(a | b for a, b in zip(self.values, other.values, strict=True)), self.rows + other.rows, both
        )


@dataclass(frozen=True)
class Uniform(Mechanism):
    """One `uniform` column, or the columns of one joint group as one attribute over the product of their domains."""

    reference = "xiao2009, sections 3 to 6, Lemma 1 and Theorems 1 and 2"
    options = frozenset({"domain", "bins", "scale", "nulls", "joint", "unseen"})
    measures = frozenset({"success", "rho2", "growth", "epsilon"})
    examples = (
        Example("categories"),
        Example("categories", 2, {"joint": "both", "nulls": "perturb"}, keeps_nulls=False),
    )
    specs: tuple[Column, ...]
    entity: str | None = None
    """The column that names the entities, where several records are of one."""

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns if self.entity is None else (*self.columns, self.entity)

    def for_entities(self, column: str) -> Mechanism:
        if len(self.specs) > 1:
            raise PolicyError(
                f"categories that are replaced together are drawn again where one of them differs, and a vote over the "
                f"rows of an entity would use that; leave out `joint` of {', '.join(self.columns)}, or give {column!r} "
                "another role than entity"
            )
        return replace(self, entity=column)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)

    @classmethod
    def of(cls, columns: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> Sequence[Mechanism]:  # noqa: ARG003
        groups: dict[tuple[bool, str], list[Column]] = {}
        for name, options in columns.items():
            spec = Column.of(name, options)
            groups.setdefault((spec.joint is not None, spec.joint or name), []).append(spec)
        for specs in groups.values():
            if len({(spec.scale, spec.perturbs_null) for spec in specs}) > 1:
                raise PolicyError(
                    f"the columns of the joint group {specs[0].joint!r} must have the same `scale` and `nulls`"
                )
        return [cls(tuple(specs)) for specs in groups.values()]

    def check(self, schema: pa.Schema) -> None:
        for spec in self.specs:
            kind = schema.field(spec.name).type
            kind = kind.value_type if types.is_dictionary(kind) else kind
            if spec.domain is not None and spec.domain.edges:
                if not is_number(kind):
                    raise SourceError(f"`bins` need numbers, and column {spec.name!r} holds {kind}; state a `domain`")
            elif not is_category(kind) and (spec.domain is None or not is_number(kind)):
                raise SourceError(
                    f"the role uniform needs categories, and column {spec.name!r} holds {kind}; state its `domain` "
                    "or `bins`, or give it the role gaussian"
                )

    def summarise(self, batch: pa.RecordBatch, earlier: Summary | None = None) -> Summary:  # noqa: ARG002
        values = (frozenset() if spec.domain else frozenset(observed(batch.column(spec.name))) for spec in self.specs)
        entities = None if self.entity is None else EntityRows.counted(entity_hashes(batch, self.entity))
        return Observed(tuple(values), batch.num_rows, entities)

    def fit(self, summary: Summary, tree: PathTree) -> Scheme:
        """Fix the domains: stated in the policy, else what was observed, in order."""
        if not isinstance(summary, Observed):
            raise TypeError("the uniform mechanism is fitted to observed values")
        for spec, values in zip(self.specs, summary.values, strict=True):
            if not spec.accepted:
                refuse_free_text(spec.name, values, summary.rows, f'domain = "{OBSERVED}"')
        domains = [
            (spec.domain or Domain.listed(sorted(values))).with_unseen(spec.name, spec.unseen)
            for spec, values in zip(self.specs, summary.values, strict=True)
        ]
        rows = {} if summary.entities is None else {ENTITY_ROWS: summary.entities.most_rows}
        return self.restore({"domains": [domain.encode() for domain in domains]} | rows, tree)

    def restore(self, state: dict[str, Any], tree: PathTree) -> Scheme:
        domains = tuple(Domain.decode(data) for data in state["domains"])
        if len(domains) != len(self.columns):
            raise ValueError("each column must have a domain")
        size = 1
        for domain in domains:
            size *= max(domain.count + self.specs[0].perturbs_null, 1)
        if size > LARGEST:
            raise PolicyError(
                f"the domain of {' x '.join(self.columns)} must have at most {LARGEST:,} values, and has {size:,}; "
                "perturb fewer columns together, or coarsen them"
            )
        entities = None if self.entity is None else (self.entity, float(state[ENTITY_ROWS]))
        spec = self.specs[0]
        scheme = UniformScheme(self.columns, domains, spec.scale, spec.perturbs_null, tree, entities)
        scheme.model(tree.declared[-1])  # the least trusted level has the least retention: refuse it now
        return scheme
