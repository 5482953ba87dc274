"""How objects show themselves: in one line at a prompt, as a small table in a notebook."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.pages import escape, table

_MOST_ROWS = 60
"""Rows of a table in a notebook."""


@dataclass(frozen=True)
class Description:
    """What an object is, in the words of its users."""

    title: str
    facts: Sequence[str] = ()
    """What is shown after the title, in one line."""
    names: Sequence[str] = ()
    """The heads of a table's columns."""
    rows: Sequence[Sequence[str]] = ()
    texts: int = 99
    """The number of the table's columns, from the left, that hold text."""
    notes: Sequence[str] = ()
    """Sentences below the table."""

    def line(self) -> str:
        """The description in one line."""
        return f"<{self.title}{': ' if self.facts else ''}{', '.join(self.facts)}>"

    def html(self) -> str:
        """The description for a notebook."""
        parts = [f"<b>{escape(self.title)}</b>", f"<div>{escape(', '.join(self.facts))}</div>"]
        if self.rows:
            parts.append(table(self.names, self.rows[:_MOST_ROWS], texts=self.texts))
        if len(self.rows) > _MOST_ROWS:
            parts.append(f"<div>… and {len(self.rows) - _MOST_ROWS:,} more</div>")
        if self.notes:
            parts.append(f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in self.notes)}</ul>")
        return f"<div>{''.join(parts)}</div>"


def counted(number: int, noun: str) -> str:
    """A number with its noun, as in 1 column or 3 columns."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Described(abc.ABC):
    """An object that shows its description; a dataclass of this kind has `repr=False`."""

    @abc.abstractmethod
    def description(self) -> Description:
        """What the object is."""

    def __repr__(self) -> str:
        return self.description().line()

    def _repr_html_(self) -> str:
        return self.description().html()
