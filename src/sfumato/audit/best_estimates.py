"""Best estimates: of all attacks on released copies, the one that comes closest to the truth, column by column."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from sfumato.attacks import Estimate, Posterior, Score
from sfumato.kernels import Floats


@dataclass
class BestEstimates:
    """What a coalition that tries everything knows in the end; attacks run in several threads."""

    numbers: dict[str, tuple[float, str, Floats]] = field(default_factory=dict)
    """The residual error, the attack, and its estimates of each column of numbers or scores."""
    categories: dict[tuple[str, ...], tuple[float, str, Posterior]] = field(default_factory=dict)
    """The accuracy, the attack, and the posterior of each attribute."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def offer(self, estimate: Estimate, score: Score) -> None:
        """Keep those columns of an estimate that are better than all before."""
        with self._lock:
            for number in score.numbers:
                error = number.error.attack.estimate
                if error < self.numbers.get(number.column, (np.inf,))[0]:
                    values = estimate.values[:, estimate.columns.index(number.column)].copy()
                    self.numbers[number.column] = error, estimate.attack, values
            posteriors = {posterior.columns: posterior for posterior in estimate.posteriors}
            for category in score.categories:
                accuracy = category.success.attack.estimate
                better = accuracy > self.categories.get(category.columns, (-np.inf,))[0]
                if better and category.columns in posteriors:
                    self.categories[category.columns] = accuracy, estimate.attack, posteriors[category.columns]
