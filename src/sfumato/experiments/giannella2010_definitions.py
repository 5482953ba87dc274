"""giannella2010, Definition 3.1 and section IV-F: breaches by norm, by the nearest entry (MED) and by the cosine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks.evidence.arrays import random_orthogonal
from sfumato.attacks.known_input import Span
from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._plotting import legend_above, lines
from sfumato.experiments._rotation_attacks import distinct_letters

NORM, MED, COSINE = "relative error", "minimum entry difference", "cosine"
GUESSED = "column means, no attack"
EPSILON = 0.05


class Definitions(Experiment):
    """Breach rates of the known-input attack by each definition, beside a guess that needs no attack."""

    title = "giannella2010, Definition 3.1: three definitions of a breach (Letter Recognition, ε = 0.05)"
    description = (
        "The known-input attack on rotated letters: a random rotation among those that fit the known inputs (Algorithm "
        "IV-D.1), without a translation. Dashed: the means of the columns as the estimate of every record, for which "
        "no copy is needed (G7). NAD at an entry of 0 is |â| (G6)."
    )
    data = "Letter Recognition (UCI), 18,668 x 16"
    figsize = (7.6, 3.8)
    seed = 31

    def run(self, job: Job) -> pa.Table:
        """Attack with growing numbers of known inputs."""
        data = distinct_letters()
        out: list[dict[str, Any]] = []
        identity = implied = 0.0
        for known in job.track(job.size((2, 4, 6, 8, 10, 12, 14, 16), (4, 10, 16))):
            for run in range(job.size(10, 3)):
                rng = job.rng(known, run)
                rows = data @ random_orthogonal(rng, 16).T
                inputs = rng.choice(len(data), known, replace=False)
                estimate = rows @ Span.of(data[inputs], rows[inputs], translated=False).random_completion(run)
                rates = {name: breaches(estimate, data, name, EPSILON) for name in (NORM, MED, COSINE)}
                out += [{"series": n, "known": known, "rate": float(r.mean())} for n, r in rates.items()]
                relative = np.linalg.norm(estimate - data, axis=1) / np.linalg.norm(data, axis=1)
                identity = max(identity, float(np.abs(_cosine_distance(estimate, data) - relative**2 / 2).max()))
                implied = max(implied, float((rates[NORM] & ~rates[MED]).mean()))
        guess = np.tile(data.mean(axis=0), (len(data), 1))
        out += [
            {"series": f"{name}, {GUESSED}", "known": 0, "rate": float(breaches(guess, data, name, EPSILON).mean())}
            for name in (NORM, MED, COSINE)
        ]
        checks = (("identity", identity), ("implied", implied))
        return to_table([*out, *({"series": name, "known": 0, "rate": value} for name, value in checks)])

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot a line for each definition, and its baseline."""
        axis = figure.subplots()
        lines(axis, _means(table), "known", "rate", "series")
        for i, name in enumerate((NORM, MED, COSINE)):
            height = float(select(table, "rate", series=f"{name}, {GUESSED}")[0])
            axis.axhline(height, color=axis.lines[i].get_color(), linestyle="--", linewidth=1)
        axis.set_xlabel("known inputs a")
        axis.set_ylabel("share of records breached")
        axis.set_ylim(-0.03, 1.08)
        legend_above(axis, 3)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check the relations of section IV-F."""
        identity, implied = (float(select(table, "rate", series=name)[0]) for name in ("identity", "implied"))
        med = float(select(table, "rate", series=MED, known=4).mean())
        guess = {name: float(select(table, "rate", series=f"{name}, {GUESSED}")[0]) for name in (NORM, MED, COSINE)}
        return [
            claim(
                "if an ε-privacy breach occurs, then so does an ε-MED-privacy breach",
                "section IV-F",
                "for every record of every attack",
                f"{implied:.2%} of the records are an exception at most",
                implied == 0,
            ),
            claim(
                "1 - cos equals half of the squared relative error",
                "section IV-F",
                "to 1e-9 for every record, where the estimate has the length of the record (no translation)",
                f"off by {identity:.0e} at most",
                identity < 1e-9,
                "G9",
            ),
            claim(
                "on Letter Recognition, four known inputs produce an ε-MED-privacy breach with probability one",
                "section IV-F",
                "a breach of some record in every attack, and more records than a guess without attack breaches",
                f"{med:.2f} of the records with four known inputs; the means of the columns breach {guess[MED]:.2f} by "
                f"MED, {guess[COSINE]:.2f} by the cosine, {guess[NORM]:.2f} by the relative error",
                med > guess[MED],
                "G7",
            ),
        ]


def breaches(estimate: Any, original: Any, definition: str, epsilon: float) -> Any:
    """Which records are breached by a definition of 3.1."""
    if definition == COSINE:
        return _cosine_distance(estimate, original) <= epsilon
    if definition == NORM:
        return np.linalg.norm(estimate - original, axis=1) <= epsilon * np.linalg.norm(original, axis=1)
    scale = np.where(original == 0, 1.0, np.abs(original))
    return (np.abs(estimate - original) / scale).min(axis=1) <= epsilon


def _cosine_distance(estimate: Any, original: Any) -> Any:
    lengths = np.linalg.norm(estimate, axis=1) * np.linalg.norm(original, axis=1)
    return 1 - (estimate * original).sum(axis=1) / np.maximum(lengths, 1e-300)


def _means(table: pa.Table) -> pa.Table:
    """The mean over attacks of each definition."""
    out = []
    for name in (NORM, MED, COSINE):
        for known in sorted(set(select(table, "known", series=name).tolist())):
            rate = float(select(table, "rate", series=name, known=known).mean())
            out.append({"series": name, "known": known, "rate": rate})
    return to_table(out)
