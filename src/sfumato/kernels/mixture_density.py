"""A Gaussian mixture with one common width, fitted to noisy counts on a grid: the initial density of a deconvolution.

Detail much finer than the noise hardly shows in the counts, so a reconstruction returns its own assumptions there. It
assumes least when it starts from a simple density that the counts do not contradict (a parametric start: Hjort and Glad
1995). The number of components is chosen by Schwarz's criterion (BIC). The width is then increased by one standard
error: estimated widths are too small as often as too large, and components that are too narrow are the worse error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from sfumato.kernels import Floats

_MOST_COMPONENTS = 6
_PATIENCE = 2
"""The number of further components that may fail to improve the criterion before the search stops."""
UNIFORM_SHARE = 0.02
"""The share of probability that is spread over all bins, so that no bin is impossible."""
_FAR = 3.0
"""The distance of a mean beyond the grid, in lengths of the grid, at which only the slope of its tail remains."""
_LARGEST_LOGIT = 12.0
_TOLERANCE, _LEAST_TOLERANCE = 1e-3, 2.2e-9
"""An iteration that raises the total log-likelihood by less is the last; of many values, the optimiser's own bound."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of a mixture of `K ≥ 1` components, which the optimiser sees as one vector."""

    logits: Floats
    """The logarithms of the weights relative to the first component's, for the other `K-1` components."""
    means: Floats
    """The means of the `K` components."""
    log_width: float
    """The logarithm of the standard deviation that all components share."""

    @classmethod
    def unpack(cls, vector: Floats) -> Parameters:
        """The parameters in a vector of length `2K`: logits, means, log width."""
        count = len(vector) // 2
        return cls(vector[: count - 1], vector[count - 1 : -1], float(vector[-1]))

    def pack(self) -> Floats:
        """The vector of length `2K` that `unpack` reads."""
        return np.concatenate([self.logits, self.means, [self.log_width]])

    @property
    def count(self) -> int:
        """The number of components."""
        return len(self.means)

    @property
    def width(self) -> float:
        """The standard deviation of every component."""
        return float(np.exp(self.log_width))

    def weights(self) -> Floats:
        """The weights of the components, which sum to 1 (softmax of the logits, with 0 for the first)."""
        logits = np.append(0.0, self.logits)
        weights: Floats = np.exp(logits - logits.max())
        normalised: Floats = weights / weights.sum()
        return normalised


@dataclass(frozen=True)
class MixtureDensity:
    """A Gaussian mixture over the bins of a grid; uniform if it has no components."""

    centres: Floats
    """The centres of the bins."""
    parameters: Parameters | None
    """The parameters of the components; none for the uniform density."""
    least_width: float
    """The least width: components much narrower than the noise, and the gaps between them, cannot be resolved."""

    @property
    def count(self) -> int:
        """The number of components."""
        return 0 if self.parameters is None else self.parameters.count

    def probabilities(self) -> Floats:
        """The probability of every bin, including the share that is spread uniformly."""
        if self.parameters is None:
            return np.full(len(self.centres), 1 / len(self.centres))
        components, _ = self._components(self.parameters)
        mixture: Floats = components @ self.parameters.weights()
        return (1 - UNIFORM_SHARE) * mixture + UNIFORM_SHARE / len(mixture)

    def mixture_and_gradient(self) -> tuple[Floats, Floats]:
        """The probabilities without the uniform share, and their derivatives by each packed parameter (columns)."""
        if self.parameters is None:
            raise ValueError("a uniform density has no parameters to differentiate by")
        components, standardised = self._components(self.parameters)
        weights = self.parameters.weights()
        mixture = components @ weights
        by_logit = (components - mixture[:, None]) * weights
        weighted = components * weights
        by_mean = weighted * (standardised - (components * standardised).sum(axis=0)) / self.parameters.width
        squares = standardised**2
        by_width = (weighted * (squares - (components * squares).sum(axis=0))).sum(axis=1, keepdims=True)
        return mixture, np.concatenate([by_logit[:, 1:], by_mean, by_width], axis=1)

    def refitted(self, channel: Floats, counts: Floats) -> MixtureDensity:
        """The mixture with the same number of components for other counts, searched from the present parameters."""
        if self.parameters is None:
            return self
        return widened(channel, counts, _maximise(channel, counts, self, [self.parameters]))

    def _components(self, parameters: Parameters) -> tuple[Floats, Floats]:
        """The probabilities of the bins under each component, and the bins' standardised distances from its mean."""
        standardised = (self.centres[:, None] - parameters.means) / parameters.width
        densities = np.exp(-0.5 * (standardised**2 - (standardised**2).min(axis=0)))
        return densities / densities.sum(axis=0), standardised


def fit_mixture(
    channel: Floats, counts: Floats, centres: Floats, observed_centres: Floats, least_width: float
) -> MixtureDensity:
    """The mixture that Schwarz's criterion prefers, widened by one standard error of its width.

    Args:
        channel: the channel matrix: the probability of each observed bin (row) given each original bin (column).
        counts: the number of noisy values in each observed bin.
        centres: the centres of the bins of the original.
        observed_centres: the centres of the observed bins.
        least_width: the least width of a component.

    """
    best, failures = MixtureDensity(centres, None, least_width), 0
    best_score = log_likelihood(channel, counts, best.probabilities())
    penalty = np.log(counts.sum())  # half a logarithm for each parameter: a component has a weight and a mean
    for count in range(1, _MOST_COMPONENTS + 1):
        mixture = _maximise(channel, counts, best, _starting_points(counts, centres, observed_centres, count))
        score = log_likelihood(channel, counts, mixture.mixture_and_gradient()[0]) - penalty * count
        if score > best_score:
            best, best_score, failures = mixture, score, 0
        elif (failures := failures + 1) == _PATIENCE:
            break
    return widened(channel, counts, best)


def widened(channel: Floats, counts: Floats, mixture: MixtureDensity) -> MixtureDensity:
    """The mixture with its width increased by one standard error, and the other parameters likeliest given that width.

    This costs about ½ in log-likelihood. The mixture is returned unchanged where the counts hardly determine its width.
    """
    if mixture.parameters is None:
        return mixture
    probabilities, gradient = mixture.mixture_and_gradient()
    observed_gradient = channel @ gradient
    weights = counts / np.maximum(channel @ probabilities, 1e-100) ** 2
    information = observed_gradient.T @ (weights[:, None] * observed_gradient)
    covariance_with_width = np.linalg.pinv(information, hermitian=True)[-1]
    variance_of_width = covariance_with_width[-1]
    if not 0 < variance_of_width < 1:  # the counts do not determine the width
        return mixture
    shifted = mixture.parameters.pack() + covariance_with_width / np.sqrt(variance_of_width)
    wider = replace(mixture, parameters=Parameters.unpack(shifted))
    loss = log_likelihood(channel, counts, probabilities) - log_likelihood(
        channel, counts, wider.mixture_and_gradient()[0]
    )
    return wider if 0 <= loss < 1 else mixture


def _maximise(
    channel: Floats, counts: Floats, template: MixtureDensity, starting_points: list[Parameters]
) -> MixtureDensity:
    """The mixture of greatest likelihood reached from some starting points, on the template's bins and least width."""
    low, high, rows = template.centres[0], template.centres[-1], counts.sum()
    count, span, least = starting_points[0].count, high - low, template.least_width
    bounds = [(-_LARGEST_LOGIT, _LARGEST_LOGIT)] * (count - 1)
    bounds += [(low - _FAR * span, high + _FAR * span)] * count
    bounds += [(np.log(least), np.log(max(_FAR * span, 2 * least)))]

    def negative_log_likelihood(vector: Floats) -> tuple[float, Floats]:
        mixture, gradient = replace(template, parameters=Parameters.unpack(vector)).mixture_and_gradient()
        expected = np.maximum(channel @ mixture, 1e-300)
        return -float(counts @ np.log(expected)) / rows, -(gradient.T @ (channel.T @ (counts / expected))) / rows

    def optimum(start: Parameters) -> OptimizeResult:
        inside = np.clip(start.pack(), *np.array(bounds).T)
        options = {"ftol": max(_TOLERANCE / rows, _LEAST_TOLERANCE)}
        return minimize(negative_log_likelihood, inside, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    optima = [optimum(start) for start in starting_points]
    best = min(optima, key=lambda found: float(found.fun))
    return replace(template, parameters=Parameters.unpack(best.x))


def _starting_points(counts: Floats, centres: Floats, observed_centres: Floats, count: int) -> list[Parameters]:
    """Parameters with means at quantiles of the counts, and with means at equal distances."""
    share = (np.arange(count) + 0.5) / count
    cumulative = np.cumsum(counts) / counts.sum()
    mean = counts @ observed_centres / counts.sum()
    deviation = np.sqrt(counts @ (observed_centres - mean) ** 2 / counts.sum())
    low, high = centres[0], centres[-1]
    quantiles = np.clip(np.interp(share, cumulative, observed_centres), low, high)
    equal = np.zeros(count - 1)
    return [
        Parameters(equal, quantiles, float(np.log(max(0.5 * deviation / count, 1e-300)))),
        Parameters(equal, low + (high - low) * share, float(np.log(0.3 * (high - low) / count))),
    ]


def log_likelihood(channel: Floats, counts: Floats, probabilities: Floats) -> float:
    """The log-likelihood of noisy counts up to a constant, given the probabilities of the bins of the original."""
    return float(counts @ np.log(np.maximum(channel @ probabilities, 1e-300)))
