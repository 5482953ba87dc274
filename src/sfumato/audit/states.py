"""The three states of a verdict."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The three states of a verdict, the worst first."""

    UNSOUND = "unsound"
    AT_RISK = "at risk"
    WITHIN_LIMITS = "within limits"

    @property
    def exit_code(self) -> int:
        """What a command returns: 0 if all is well, 3 at risk, 4 if the copies are unsound; 1 and 2 are errors."""
        return {State.WITHIN_LIMITS: 0, State.AT_RISK: 3, State.UNSOUND: 4}[self]

    @property
    def sentence(self) -> str:
        """What the state means, as the rest of a sentence."""
        return {
            State.UNSOUND: "do not release these copies.",
            State.AT_RISK: "collusion-resistant, but columns are readable or records can be singled out.",
            State.WITHIN_LIMITS: "collusion-resistant, and no limit exceeded (of the policy, else 90 % of a column).",
        }[self]
