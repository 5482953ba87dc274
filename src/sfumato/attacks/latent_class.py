"""Latent-class attack: one distribution of numbers and categories together, fitted behind the known noise."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.attacks import Attack, Estimate, Evidence, FittedAttack, Posterior
from sfumato.attacks._dependent_columns import fit_groups
from sfumato.attacks._mixed_evidence import MixedEvidence
from sfumato.attacks._parameters import require_at_least
from sfumato.attacks._public_predictions import PublicPredictions
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.kernels.joint_model import CLASSES, ITERATIONS, ROWS, JointModel
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

_FEWEST = 3000
"""The fewest records, of those that there are, to which the classes of one group of columns are fitted."""


@dataclass(frozen=True, kw_only=True)
class LatentClass(Attack):
    """The posterior under latent classes of whole records, numbers, categories and public columns together.

    Within a class numbers are normal, with atoms where a column has them, and categories independent. The classes are
    fitted to the copies and the published models alone, and separately for each group of columns that
    depend on each other; of several copies on one path the best is used.
    """

    reference = "latent class analysis (Lazarsfeld and Henry 1968) behind the noise of li2012 and xiao2009, eq. 1"
    cost = 4.0
    supports = frozenset({GaussianNoise.kind, UniformReplacement.kind})
    combines_copies = False
    example = {"classes": 6, "iterations": 12}
    imputes_missing = True
    unit_tolerance = 0.05  # clusters break ties in another way
    classes: int = CLASSES
    """The number of classes at first; those that lose their records are dropped."""
    iterations: int = ITERATIONS
    """The most iterations of EM."""
    rows: int = ROWS
    """The largest number of records that the classes are fitted to."""

    def __post_init__(self) -> None:
        require_at_least("classes", self.classes, 1)
        require_at_least("iterations", self.iterations, 1)
        require_at_least("rows", self.rows, 50)

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Fit classes to each group of columns that depend on each other, with what public columns predict."""
        predictions = PublicPredictions.of(evidence)
        if predictions is None:
            return fit_groups(evidence, self._fit, self.name)
        fitted = fit_groups(predictions.extended(evidence), self._fit, self.name)
        return lambda some: fitted(predictions.extended(some))

    def _fit(self, evidence: Evidence, groups: int) -> FittedAttack:
        """Fit the joint model."""
        rows = max(self.rows // groups, min(self.rows, _FEWEST))
        view = MixedEvidence.of(evidence)
        joint = JointModel.fit(view.records, view.observed(evidence), self.classes, self.iterations, rows)
        model, channel = joint.classes, view.channel
        priors = {part.model.columns: attribute_prior(part, evidence.knowledge) for part in view.attributes}

        def estimate(some: Evidence) -> Estimate:
            shown = view.observed(some)
            classes = model.responsibilities(shown, channel)[0]
            posteriors = [
                Posterior.dense(
                    part.model, priors[part.model.columns], model.category_posterior(shown, classes, channel, i)
                )
                for i, part in enumerate(view.attributes)
            ]
            return Estimate(self.name, view.columns, joint.numbers(shown, classes), tuple(posteriors))

        return estimate
