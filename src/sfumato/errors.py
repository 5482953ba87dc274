"""Exceptions: everything that Sfumato raises on purpose.

    SfumatoError
    ├── LevelError       an invalid level or ladder
    ├── PolicyError      a policy that cannot be read or contradicts itself
    │   └── UnknownMember    a name that no mechanism, engine, ... has
    ├── SourceError      a table that cannot be read or does not fit its policy
    ├── CustodyError     a key that is missing, malformed or badly kept
    ├── VaultError       a vault that cannot be opened, or does not hold what is asked of it
    │   ├── UnknownSubject   a name that nothing in the vault has
    │   ├── Unavailable      a database that cannot be used now
    │   ├── GrantError       a request that no grant in force allows
    │   │   └── NotGranted       a dataset that a recipient may not know of
    │   └── TamperedError    a vault that does not agree with its ledger
    ├── ManifestError    a copy whose manifest is missing, malformed or does not fit it
    ├── ReleaseError     a copy that must not or could not be made
    │   └── EngineError      an engine that is unavailable, or failed
    ├── ServiceError     a service that returned an error or did not respond
    ├── SurveyError      an invalid survey definition, or a rejected answer
    │   ├── GuidanceRefused  guidance that would disclose more than was promised
    │   └── BootstrapComplete    an unperturbed answer that a guided survey no longer needs
    ├── AttackError      an attack that cannot be made on what it was given
    │   └── NumericalFailure    an attack that fits the data, but whose linear algebra failed on it
    └── MiningError      a question that a copy cannot answer

Each message is one sentence that says what must hold, what was got and what to do. The command line prints it and
exits with the code of its class: 1 for what is refused, 10 to 15 for what a script may want to distinguish.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def is_of_arrow(error: BaseException) -> bool:
    """Whether Arrow raised an error; commands that read no table do not import it."""
    return any(kind.__module__ == "pyarrow.lib" for kind in type(error).__mro__)


class SfumatoError(Exception):
    """The root of the tree; catch this to catch every refusal."""

    exit_code = 1
    """What a command that fails with it exits with."""


class LevelError(SfumatoError):
    """An invalid level or ladder."""

    exit_code = 10


class PolicyError(SfumatoError):
    """A policy that cannot be read or contradicts itself."""

    exit_code = 10


class UnknownMember(PolicyError, KeyError):
    """A name that no member of a family has, or a member that cannot be loaded; a `KeyError`, as of any mapping."""

    def __str__(self) -> str:  # a `KeyError` would quote the sentence
        return Exception.__str__(self)


class SourceError(SfumatoError):
    """A table that cannot be read or does not fit its policy."""

    exit_code = 11


class CustodyError(SfumatoError):
    """A key that is missing, malformed or badly kept."""

    exit_code = 12


class VaultError(SfumatoError):
    """A vault that cannot be opened, or does not hold what is asked of it."""

    exit_code = 13


class UnknownSubject(VaultError):
    """A name that nothing in the vault has."""


class Unavailable(VaultError):
    """A database that cannot be used now."""

    exit_code = 15


class GrantError(VaultError):
    """A request that no grant in force allows."""

    exit_code = 1

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}; {advice}" if advice else reason)
        self.reason = reason
        """The message without the advice to the owner, which is not for recipients."""


class NotAppended(GrantError):
    """A request for the rows since a version after which others were not only appended."""


class NotGranted(GrantError):
    """A dataset that a recipient may not know of."""


class TamperedError(VaultError):
    """A vault that does not agree with its ledger."""

    exit_code = 14


class ManifestError(SfumatoError):
    """A copy whose manifest is missing, malformed or does not fit it."""

    exit_code = 11


class ReleaseError(SfumatoError):
    """A copy that must not or could not be made."""


class EngineError(ReleaseError):
    """An engine that is unavailable, or failed."""

    exit_code = 15


class ServiceError(SfumatoError):
    """A service that returned an error or did not respond."""

    exit_code = 15


class SurveyError(SfumatoError):
    """An invalid survey definition, or a rejected answer."""


class GuidanceRefused(SurveyError):
    """Guidance that would disclose more than was promised."""


class BootstrapComplete(SurveyError):
    """An unperturbed answer that a guided survey no longer needs: it has enough to compute guidance from."""


class AttackError(SfumatoError):
    """An attack that cannot be made on what it was given."""


class NumericalFailure(AttackError):
    """An attack that fits the data, but whose linear algebra failed on it."""


class MiningError(SfumatoError, ValueError):
    """A question that a copy cannot answer; a `ValueError` too, as scikit-learn's own refusals are."""


def install_hint(extra: str) -> str:
    """The end of an error about a missing optional dependency: how to install it."""
    return f"in a clone of the repository, run `pip install '.[{extra}]'`"


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest known one, else all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"
