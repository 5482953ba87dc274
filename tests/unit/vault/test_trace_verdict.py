"""What a trace found, in a sentence: who shares a copy, and the worst cases, are never left out."""

from __future__ import annotations

import pytest

from sfumato.vault.likelihood_ratio import Score
from sfumato.vault.messages import trace_verdict
from sfumato.vault.tracing import Suspect, Trace

SHARED = Suspect(("clinic", "insurer"), 1, 0.5, Score(30.0), 1e-100)
ALONE = Suspect(("office",), 1, 0.4, Score(20.0), 1e-50)
UNRECORDED = Suspect(("press",), 1, 0.3, Score(20.0), 1e-50, unrecorded=True)
INNOCENT = Suspect(("stranger",), 1, 0.2, Score(0.5), 1.0)


@pytest.mark.parametrize(
    ("suspects", "original", "said"),
    [
        ((INNOCENT,), 0.0, []),
        ((SHARED,), 0.0, ["made from the copy of clinic or insurer"]),
        ((SHARED, ALONE), 0.0, ["made from the copy of clinic or insurer", "made from the copy of office"]),
        ((UNRECORDED,), 0.0, ["made from a copy that is not in the ledger, so that nobody is accused of it"]),
        ((INNOCENT,), 0.5, ["the original table has leaked: 50.0% of the numbers equal it"]),
    ],
)
def test_what_is_said(suspects: tuple[Suspect, ...], original: float, said: list[str]) -> None:
    assert trace_verdict(Trace(100, 90, "values", ("age",), original, 0, suspects)) == said
