"""Authenticated index of the ledger: the latest entry about each subject, and a digest of all entries about it.

An entry's authentication code shows that the vault wrote it, but not that it is the latest one: somebody who can delete
rows could hide a revocation. So each subject (a kind, a dataset, a recipient, and each combination with `ANY` for the
last two) has a row with its number of entries and a running digest of them; the rows are the leaves of a Merkle tree
whose root is in the sealed head of the ledger. A lookup verifies one path of the tree: its cost does not grow with the
ledger (until there are many more than `2^16` subjects). Subjects are stored under the tokens of their names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby

from sfumato.errors import TamperedError
from sfumato.ledger.chain import Entry, canonical
from sfumato.ledger.connection import Connection, Row
from sfumato.ledger.tables import NODES, SUBJECTS

ANY = "*"
"""Stands for every dataset, or every recipient; no name is equal to it."""

_FANOUT = 256
"""The children of the root, and of each node below it: there are `2^16` buckets."""

_OTHER = {"dataset": "recipient", "recipient": "dataset"}
_EMPTY = ""
"""The hash of nothing: of the tree of an empty ledger, and of a bucket without subjects."""

SubjectName = tuple[str, str, str]
"""Kind, dataset and recipient, or the tokens of them."""

Token = Callable[[str], str]
"""The keyed hash of a name."""


@dataclass(frozen=True)
class Subject:
    """All that the index holds about one subject."""

    kind: str
    dataset: str
    recipient: str
    entry: int
    """The number of its latest entry."""
    hash: str
    """The hash of that entry."""
    entries: int
    """The number of its entries."""
    subjects: int
    """The number of subjects that it stands for: 1 without `ANY`."""
    digest: str
    """The running digest of the hashes of its entries."""

    @property
    def name(self) -> SubjectName:
        """The tokens of kind, dataset and recipient."""
        return self.kind, self.dataset, self.recipient


def names_of(entry: Entry, token: Token) -> list[SubjectName]:
    """The subjects that an entry is about, by their tokens; the first one is the narrowest."""
    narrow = token(entry.kind), token(entry.dataset), token(entry.recipient)
    return [narrow, *wide_names(narrow, token(ANY))]


def wide_names(narrow: SubjectName, anything: str) -> list[SubjectName]:
    """The subjects that stand for a narrow one among others, given the token of `ANY`."""
    kind, dataset, recipient = narrow
    return [(kind, dataset, anything), (kind, anything, recipient), (kind, anything, anything)]


def extended(before: Subject | None, name: SubjectName, entry: Entry, *, is_new: bool) -> Subject:
    """A subject after one more entry, which may be the first one about its narrowest subject."""
    entries, subjects, digest = (before.entries, before.subjects, before.digest) if before else (0, 0, _EMPTY)
    return Subject(*name, entry.number, entry.hash, entries + 1, subjects + is_new, running(digest, entry.hash))


def running(digest: str, entry_hash: str) -> str:
    """The running digest after one more entry."""
    return hashlib.sha256((digest + entry_hash).encode()).hexdigest()


def tree(subjects: Iterable[Subject]) -> dict[int, str]:
    """The nodes of the tree over some subjects, in the order of their buckets, by number; that of the root is -1."""
    leaves = {number: _leaf(some) for number, some in groupby(subjects, key=lambda one: _bucket(one.name))}
    below: dict[int, dict[int, str]] = {}
    for number, leaf in leaves.items():
        below.setdefault(number // _FANOUT, {})[number] = leaf
    inner = {prefix: _node(children) for prefix, children in below.items()}
    return {-1: _node(inner), **inner, **{_FANOUT + number: leaf for number, leaf in leaves.items()}}


class MemoryIndex:
    """The index of some entries, in memory."""

    def __init__(self, token: Token) -> None:
        self._token = token
        self._subjects: dict[SubjectName, Subject] = {}

    def record(self, entry: Entry) -> None:
        """Add an entry, in order."""
        names = names_of(entry, self._token)
        is_new = names[0] not in self._subjects
        for name in names:
            self._subjects[name] = extended(self._subjects.get(name), name, entry, is_new=is_new)

    def find(self, name: SubjectName) -> Subject | None:
        """The subject with this name."""
        return self.find_tokens(_tokens(name, self._token))

    def find_tokens(self, tokens: SubjectName) -> Subject | None:
        """The subject whose name has these tokens."""
        return self._subjects.get(tokens)

    def recent(self, kind: str, none: str, field: str, first: int, skip: int) -> list[Subject]:
        """The subjects of a kind that changed last, which differ in their dataset or in their recipient.

        Args:
            kind: the token of the kind.
            none: the token of no name, which the other field has.
            field: `dataset` or `recipient`.
            first: the number of subjects.
            skip: the number of those before them.

        """
        other, anything = _OTHER[field], self._token(ANY)
        found = [
            one
            for one in self
            if (one.kind, getattr(one, other)) == (kind, none) and getattr(one, field) not in (anything, none)
        ]
        return sorted(found, key=lambda subject: -subject.entry)[skip : skip + first]

    def __iter__(self) -> Iterator[Subject]:
        return iter(self._subjects.values())

    def nodes(self) -> dict[int, str]:
        """The nodes of the tree by number; that of the root is -1."""
        return tree(sorted(self, key=lambda subject: _bucket(subject.name)))


class StoredIndex:
    """The index in the database, of which everything that is read is verified against the root of the tree."""

    def __init__(self, connection: Connection, root: str, token: Token) -> None:
        self._connection, self.root, self._token = connection, root, token
        self._inner: dict[int, str] | None = None
        self._leaves: dict[int, dict[int, str]] = {}

    def find(self, name: SubjectName) -> Subject | None:
        """The subject with this name, verified; none if the ledger has no entry about it, which is verified too."""
        return self.find_tokens(_tokens(name, self._token))

    def find_tokens(self, tokens: SubjectName) -> Subject | None:
        """The subject whose name has these tokens, verified."""
        return self._subjects(_bucket(tokens)).get(tokens)

    def recent(self, kind: str, none: str, field: str, first: int, skip: int) -> list[Subject]:
        """The subjects of a kind that changed last, each verified; the arguments are those of `MemoryIndex.recent`."""
        latest = (
            f"SELECT {field} FROM sfumato_subjects WHERE kind = :kind AND {_OTHER[field]} = :none "  # noqa: S608 - two names
            f"AND {field} NOT IN :others ORDER BY entry DESC LIMIT :first OFFSET :skip"
        )
        others = [self._token(ANY), none]
        names = self._connection.values(latest, kind=kind, none=none, others=others, first=first, skip=skip)
        found = [self.find_tokens((kind, none, name) if field == "recipient" else (kind, name, none)) for name in names]
        return [subject for subject in found if subject is not None]

    def record(self, entry: Entry) -> None:
        """Add an entry, after verification of what is there, and compute the new root."""
        names = names_of(entry, self._token)
        is_new = self.find_tokens(names[0]) is None
        for name in names:
            bucket = _bucket(name)
            subjects = self._subjects(bucket)
            before = subjects.get(name)
            subjects[name] = extended(before, name, entry, is_new=is_new)
            self._write_subject(subjects[name], bucket, before is not None)
            self._write_leaf(bucket, _leaf(subjects.values()))
        self.root = _node(self._nodes_below_root())

    def _subjects(self, bucket: int) -> dict[SubjectName, Subject]:
        rows = self._connection.all("SELECT * FROM sfumato_subjects WHERE bucket = :bucket", bucket=bucket)
        found = [subject_of(row) for row in rows]
        if self._leaves_below(bucket // _FANOUT).get(bucket, _EMPTY) != _leaf(found):
            raise _altered()
        return {subject.name: subject for subject in found}

    def _leaves_below(self, prefix: int) -> dict[int, str]:
        if prefix not in self._leaves:
            first = _FANOUT + prefix * _FANOUT
            leaves = {number - _FANOUT: value for number, value in self._nodes(first)}
            if self._nodes_below_root().get(prefix, _EMPTY) != _node(leaves):
                raise _altered()
            self._leaves[prefix] = leaves
        return self._leaves[prefix]

    def _nodes_below_root(self) -> dict[int, str]:
        if self._inner is None:
            inner = dict(self._nodes(0))
            if _node(inner) != self.root:
                raise _altered()
            self._inner = inner
        return self._inner

    def _write_leaf(self, bucket: int, leaf: str) -> None:
        prefix = bucket // _FANOUT
        leaves, inner = self._leaves_below(prefix), self._nodes_below_root()
        self._write_node(_FANOUT + bucket, leaf, bucket in leaves)
        leaves[bucket] = leaf
        node = _node(leaves)
        self._write_node(prefix, node, prefix in inner)
        inner[prefix] = node

    def _nodes(self, first: int) -> list[tuple[int, str]]:
        """The nodes of one parent, given by the number of its first child."""
        nodes = "SELECT number, hash FROM sfumato_subject_nodes WHERE number >= :first AND number < :after"
        return [(row.number, row.hash) for row in self._connection.all(nodes, first=first, after=first + _FANOUT)]

    def _write_node(self, number: int, content: str, exists: bool) -> None:
        if exists:
            self._connection.update(NODES, {"hash": content}, number=number)
        else:
            self._connection.insert(NODES, {"number": number, "hash": content})

    def _write_subject(self, subject: Subject, bucket: int, exists: bool) -> None:
        values = {**asdict(subject), "bucket": bucket}
        if exists:
            kind, dataset, recipient = subject.name
            self._connection.update(SUBJECTS, values, kind=kind, dataset=dataset, recipient=recipient)
        else:
            self._connection.insert(SUBJECTS, values)


def subject_of(row: Row) -> Subject:
    """The subject that a row of the index describes."""
    return Subject(**{name: value for name, value in row._asdict().items() if name != "bucket"})


def rebuild(connection: Connection, index: MemoryIndex, token: Token) -> StoredIndex:
    """Replace the index in the database by one of all entries."""
    nodes = index.nodes()
    root = nodes.pop(-1)
    connection.delete(SUBJECTS)
    connection.delete(NODES)
    if nodes:
        rows = [{**asdict(subject), "bucket": _bucket(subject.name)} for subject in index]
        connection.insert(SUBJECTS, *rows)
        connection.insert(NODES, *({"number": number, "hash": value} for number, value in nodes.items()))
    return StoredIndex(connection, root, token)


def _tokens(name: SubjectName, token: Token) -> SubjectName:
    kind, dataset, recipient = name
    return token(kind), token(dataset), token(recipient)


def _bucket(name: SubjectName) -> int:
    """The bucket of a subject: sixteen bits of the hash of its name."""
    return int.from_bytes(hashlib.sha256(canonical(name).encode()).digest()[:2], "big")


def _leaf(subjects: Iterable[Subject]) -> str:
    """The hash of all subjects of a bucket."""
    rows = sorted((subject.__dict__ for subject in subjects), key=canonical)
    return hashlib.sha256(canonical(rows).encode()).hexdigest() if rows else _EMPTY


def _node(children: dict[int, str]) -> str:
    """The hash of a node's children."""
    return hashlib.sha256(canonical(sorted(children.items())).encode()).hexdigest() if children else _EMPTY


def _altered() -> TamperedError:
    return TamperedError(
        "the index of the ledger must agree with its sealed head, and it does not: somebody deleted or changed rows; "
        "run `sfumato verify`, and restore a backup"
    )
