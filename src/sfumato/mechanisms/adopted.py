"""Noise on a path through a copy that was released earlier, by whatever software, with Gaussian noise of known size.

An owner who has released a table once goes on safely: all further copies lie on one path with the earlier one, which
is checked to have the noise that is stated for it. `_adopted_scheme.py` draws the noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import PolicyError, SourceError
from sfumato.kernels import Floats, Mask
from sfumato.kernels.cholesky import correlation_factor
from sfumato.kernels.lattice import fine_step
from sfumato.keys.path import PathTree
from sfumato.levels import Level
from sfumato.mechanisms import Example, Mechanism, Scheme, Summary, number
from sfumato.mechanisms._adopted_scheme import AdoptedScheme, as_mask
from sfumato.mechanisms._gaussian_scheme import ROUNDED
from sfumato.mechanisms._gaussian_summary import Extent, Moments, finite, in_range
from sfumato.mechanisms.gaussian import Column
from sfumato.tables import numeric

_WIDTH = 6.0
"""Standard errors by which a measured moment may differ: with normal noise, one in a thousand million does."""


@dataclass(frozen=True)
class Given:
    """A column and the one with the values of it that were released."""

    name: str
    earlier: str
    sd: float


@dataclass(frozen=True)
class Adopted(Mechanism):
    """All `adopted` columns of a policy, perturbed on the path of the copy that was released earlier."""

    reference = "li2012, Algorithm 3 with v₁ given"
    options = frozenset({"earlier", "sd"})
    settings = frozenset({"fidelity", "correlations"})
    measures = frozenset({"rmse", "error", "dissimilarity"})
    adds_noise = True
    examples = (
        Example("numbers", options={"earlier": "given", "sd": 3}, settings={"fidelity": 0.4}, given={"given": 3.0}),
    )
    passes = 2
    given: tuple[Given, ...]
    fidelity: float
    """What the earlier copy counts as."""
    correlations: tuple[tuple[float, ...], ...]
    """Of its noise, the lower triangle without the diagonal."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(one.name for one in self.given), *(one.earlier for one in self.given))

    @classmethod
    def of(cls, columns: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> Sequence[Mechanism]:
        given = []
        for name, options in columns.items():
            earlier = options.get("earlier")
            if not isinstance(earlier, str):
                raise PolicyError(f"`earlier` of column {name!r} must name the column with what was released of it")
            given.append(Given(name, earlier, number(name, "sd", options.get("sd"), above=0)))
        if len({one.earlier for one in given} | set(columns)) < 2 * len(given):
            raise PolicyError("`earlier` of each adopted column must name a column of its own, which is not adopted")
        fidelity = number("[adopted]", "fidelity", settings.get("fidelity"), above=0)
        if fidelity >= 1:
            raise PolicyError(f"`fidelity` of [adopted] must be below 1, got {fidelity:g}")
        return [cls(tuple(given), fidelity, _correlations(settings.get("correlations"), len(given)))] if given else []

    @property
    def covariance(self) -> Floats:
        """The covariance that is stated for the earlier noise."""
        sizes = np.array([one.sd for one in self.given])
        return _matrix(self.correlations) * np.outer(sizes, sizes)

    def check(self, schema: pa.Schema) -> None:
        for name in self.columns:
            if name not in schema.names:
                raise SourceError(f"the table must have the column {name!r}, with what was released earlier; join it")
            if not numeric.is_number(schema.field(name).type):
                raise SourceError(
                    f"the role adopted needs numbers, and column {name!r} holds {schema.field(name).type}; give it the "
                    "role copula"
                )

    def summarise(self, batch: pa.RecordBatch, earlier: Summary | None = None) -> Summary:
        cells = self._cells(batch)
        if isinstance(earlier, Extent):
            return Moments.of(cells, earlier)
        for (values, null), one in zip(cells, self.given, strict=False):
            in_range(np.where(null, 0.0, values), one.name)
        return Extent.of(cells, (False,) * len(cells), (0,) * len(cells))

    def _cells(self, batch: pa.RecordBatch) -> list[tuple[Floats, Mask]]:
        """The numbers, their noise, and its squares, which tell whether it is normal and depends on the numbers."""
        numbers, noise = [], []
        for one in self.given:
            (values, _), (shown, _) = (numeric.read(batch.column(name)) for name in (one.name, one.earlier))
            missing = as_mask(batch.column(one.name))
            unknown = missing | as_mask(batch.column(one.earlier))
            finite(values, missing, one.name)
            finite(shown, unknown, one.earlier)
            numbers.append((np.where(missing, 0.0, values), missing))
            noise.append((np.where(unknown, 0.0, shown - values), unknown))
        return [*numbers, *noise, *((values**2, null) for values, null in noise)]

    def fit(self, summary: Summary, tree: PathTree) -> Scheme:
        """Check the noise, and fix the shape of all further noise by what is stated for it."""
        if not isinstance(summary, Moments):
            raise TypeError("the adopted mechanism is fitted to its second summary")
        self._check_noise(summary)
        covariance = self.covariance
        sizes = np.sqrt(np.diag(covariance))
        spread = (sizes / np.sqrt(tree.locate(Level(self.fidelity)).node.time)).tolist()
        ends = [summary.extent.ends(i) for i in range(len(self.given))]
        lines = correlation_factor(covariance / np.outer(sizes, sizes))
        state = {
            "spread": spread,
            "step": [fine_step(size, max(map(abs, both))) for size, both in zip(spread, ends, strict=True)],
            "root": [[float(entry) for entry in line[: i + 1]] for i, line in enumerate(lines)],
            "earlier": [one.earlier for one in self.given],
            "fidelity": self.fidelity,
            ROUNDED: True,
        }
        return self.restore(state, tree)

    def _check_noise(self, summary: Moments) -> None:
        """Refuse an earlier copy whose noise is not what is stated for it: no path would pass through it.

        Few records cannot show much: the tolerance is that of their sampling error.
        """
        size, names = len(self.given), [one.name for one in self.given]
        rows = summary.given_rows(size)
        if rows < 2:
            return
        measured, stated = summary.covariance(), self.covariance
        sizes = np.sqrt(np.diag(stated))
        tolerance = _WIDTH / np.sqrt(rows)
        means = np.array(summary.means()[size : 2 * size]) / sizes
        _refuse(np.abs(means), tolerance, names, "have mean 0, in standard deviations")
        noise = measured[size : 2 * size, size : 2 * size]
        errors = np.sqrt(np.outer(sizes**2, sizes**2) + stated**2)
        _refuse(np.abs(noise - stated) / errors, tolerance, names, "have the stated `sd` and correlations")
        own = np.sqrt(np.maximum(np.diag(measured), 1e-300))
        related = np.abs(measured[size:, :size]) / np.outer(own[size:], own[:size])
        _refuse(related, 2 * tolerance, [*names, *names], "be independent of the numbers")
        kurtosis = np.diag(measured)[2 * size :] / np.diag(stated) ** 2 + 1
        _refuse(np.abs(kurtosis - 3), tolerance * np.sqrt(24), names, "be normal, with kurtosis 3")

    def restore(self, state: dict[str, Any], tree: PathTree) -> Scheme:
        scheme = AdoptedScheme([Column(one.name) for one in self.given], state, tree)
        scheme.model(tree.declared[0])
        return scheme


def _refuse(found: Floats, tolerance: float, names: Sequence[str], what: str) -> None:
    """Refuse noise of which some moment differs by more than it may."""
    worst = found.max(axis=1) if found.ndim > 1 else found
    if worst.max() > tolerance:
        raise SourceError(
            f"the noise of an earlier copy must {what}, and that of {names[int(worst.argmax())]!r} differs by "
            f"{worst.max():.3g}, where {tolerance:.3g} may be due to sampling; state what it is, or give the column "
            "another role and treat the earlier copy as a leak"
        )


def _correlations(stated: Any, size: int) -> tuple[tuple[float, ...], ...]:
    if stated is None:
        return tuple((0.0,) * i for i in range(1, size))
    lines = stated if isinstance(stated, list) else []
    fits = [isinstance(line, list) and len(line) == i for i, line in enumerate(lines, 1)]
    if len(lines) != size - 1 or not all(fits):
        raise PolicyError(
            "`correlations` of [adopted] must be the lower triangle of the noise's correlations, without the diagonal "
            f"and with the columns by name: {size - 1} lines of 1, 2, … numbers, got {stated!r}"
        )
    found = tuple(tuple(number("[adopted]", "correlations", entry) for entry in line) for line in lines)
    if np.linalg.eigvalsh(_matrix(found))[0] < 1e-6:
        raise PolicyError("`correlations` of [adopted] must be those of noise that varies in every direction")
    return found


def _matrix(triangle: Sequence[Sequence[float]]) -> Floats:
    """A correlation matrix from its lower triangle."""
    matrix = np.eye(len(triangle) + 1)
    for i, line in enumerate(triangle, 1):
        matrix[i, :i] = matrix[:i, i] = line
    return matrix
