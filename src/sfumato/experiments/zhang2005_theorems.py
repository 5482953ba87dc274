"""zhang2005, Theorems 5.1 and 5.2: the degrees of error and of privacy disclosure against their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _data, claim, select, to_table
from sfumato.experiments._plotting import legend, lines
from sfumato.experiments._votes import SIZES, counts_of, imputed
from sfumato.survey import leakage
from sfumato.survey.guidance import spectrum
from sfumato.survey.perturbation import bit_probabilities, one_hot

ERROR, BOUND = "degree of error l_e, sets of one or two", "bound 2µσ₁/m"
DISCLOSED, THEIR_BOUND = "disclosed", "bound of Theorem 5.2"


class Theorems(Experiment):
    """Both theorems: on the House votes, and on the smallest examples that decide."""

    title = "zhang2005, Theorems 5.1 and 5.2: degrees of error and of disclosure"
    description = (
        "Left the votes: the largest error of a difference between classes for sets of one or two answers, with the "
        "eigenvectors of A in order of magnitude (E1), and the bound with the smallest µ that gives k. Right the share "
        "of information that a row discloses, by enumeration of all rows, and the bound, for a fair bit that is asked "
        "two or four times, a fair bit beside a constant, and four independent fair bits."
    )
    data = "Congressional Voting Records 1984 (UCI), 435 x 16; enumerated examples"
    figsize = (8.6, 3.8)
    seed = 51

    def run(self, job: Job) -> pa.Table:
        """Measure the error at each level, and enumerate the examples."""
        _, party = _data.votes()
        rows = one_hot(imputed(job.rng()), SIZES)
        values, vectors = spectrum(counts_of(rows, party).pairs)
        out: list[dict[str, Any]] = []
        for k in job.track(range(1, 16)):
            error = leakage.degree_of_error(rows, party, vectors[:, :k], 2)
            bound = 2 * abs(float(values[k])) / len(rows)
            out += [
                {"what": what, "at": str(k), "x": float(k), "value": v} for what, v in ((ERROR, error), (BOUND, bound))
            ]
        for i, (name, codes, guidance) in enumerate(examples()):
            sizes = (2,) * codes.shape[1]
            weights = np.full(len(codes), 1 / len(codes))
            share = leakage.exact(codes, weights, sizes, guidance) / leakage.entropy(codes)
            bound = leakage.paper_bound(codes, sizes, guidance.shape[1])
            found = ((DISCLOSED, share), (THEIR_BOUND, bound))
            out += [{"what": what, "at": name, "x": float(i), "value": value} for what, value in found]
        parity, labels = _parity()
        triples = _error_of_triples(parity, labels, np.zeros((6, 1)))
        largest = float(np.abs(spectrum(counts_of(parity, labels).pairs)[0]).max())
        out += [
            {"what": "parity", "at": "l_e(3)", "x": 0.0, "value": triples},
            {"what": "parity", "at": "σ₁", "x": 0.0, "value": largest},
        ]
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two panels."""
        left, right = figure.subplots(1, 2)
        votes = to_table(row for row in table.to_pylist() if row["what"] in (ERROR, BOUND))
        lines(left, votes, "x", "value", "what")
        left.set_xlabel("disclosure level k")
        left.set_ylabel("degree of error")
        left.set_yscale("log")
        legend(left, loc="upper right")
        names = [name for name, *_ in examples()]
        for offset, what, colour in ((-0.2, DISCLOSED, "#c45508"), (0.2, THEIR_BOUND, "#00629b")):
            right.bar(np.arange(len(names)) + offset, select(table, "value", what=what), 0.38, color=colour, label=what)
        right.set_xticks(range(len(names)), names, fontsize=8)
        right.set_ylabel("share of the information in an answer")
        right.set_ylim(0, 1.35)
        legend(right, loc="upper left", columns=2)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Compare both degrees with their bounds."""
        error, bound = (select(table, "value", what=what) for what in (ERROR, BOUND))
        above = int((error > bound).sum())
        shares, bounds = (select(table, "value", what=what) for what in (DISCLOSED, THEIR_BOUND))
        triples, largest = (float(select(table, "value", what="parity", at=at)[0]) for at in ("l_e(3)", "σ₁"))
        return [
            claim(
                "l_e <= 2µσ₁/m",
                "Theorem 5.1",
                "for sets of one and two answers on the votes, at every k from 1 to 15",
                f"above it at {above} of {len(error)} levels; at k = 14, {error[13]:.3f} against {bound[13]:.3f}",
                above == 0,
                "E5",
            ),
            claim(
                "this bound can be easily extended to sets of three and more",
                "Theorem 5.1",
                "for three bits whose class is their parity: l_e(3) at most 2µσ₁/m",
                f"l_e(3) = {triples:.3f}, and σ₁ = {largest:.0f}, so that the bound is 0",
                triples <= 2 * largest,
                "E6",
            ),
            claim(
                "l_p(k) < (ρ₁² + ... + ρₖ²)/mn",
                "Theorem 5.2",
                "in four examples, with guidance that a malicious collector may send",
                ", ".join(f"{share:.2f} against {limit:.2f}" for share, limit in zip(shares, bounds, strict=True)),
                bool((shares < bounds).all()),
                "E8",
            ),
        ]


def examples() -> list[tuple[str, Any, Any]]:
    """Names, all answers (equally likely), and the guidance that discloses most."""
    found = []
    for count in (2, 4):
        axis = np.zeros((2 * count, 1))
        axis[::2] = 1 / np.sqrt(count)
        found.append((f"one bit\n{count} times", np.array([[0] * count, [1] * count]), axis))
    first = np.zeros((4, 1))
    first[0] = 1
    found.append(("a bit and\na constant", np.array([[0, 0], [1, 0]]), first))
    axes = np.zeros((8, 4))
    axes[::2] = np.eye(4)
    found.append(("four\nbits", (np.arange(16)[:, None] >> np.arange(4)) & 1, axes))
    return found


def _error_of_triples(rows: Any, labels: Any, guidance: Any) -> float:
    """`l_e(3)` of the combinations that occur: the error of the difference between two classes, by definition 1."""
    sent, signs = bit_probabilities(rows, guidance), np.where(labels == 0, 1, -1)
    true = signs @ (rows @ rows.T == 3) / len(rows)
    estimated = signs @ np.prod(np.where(rows[None] == 1, sent[:, None], 1.0), axis=2) / len(rows)
    return float(np.abs(true - estimated).max())


def _parity() -> tuple[Any, Any]:
    """Three bits, each combination once, and their parity as the class."""
    bits = (np.arange(8)[:, None] >> np.arange(3)) & 1
    return one_hot(bits, (2, 2, 2)), bits.sum(axis=1) % 2
