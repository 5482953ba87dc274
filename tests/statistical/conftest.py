"""Statistical tests with a stated false-alarm rate.

`SUITE_ALPHA` bounds the probability that one whole run is red although all is right. Each test says how many checks it
makes; every check gets an equal share of the rate (a union bound, so no independence is needed). There are no retries:
at this rate, red means a bug. Each test also plants faults that its checks must catch, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

SUITE_ALPHA = 1e-6

_TOTAL = pytest.StashKey[int]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    markers = [marker for item in items for marker in item.iter_markers("statistical")]
    config.stash[_TOTAL] = sum(marker.kwargs["checks"] for marker in markers)


class Verdict:
    """Counts the checks of a test, and judges each at its share of the suite's rate."""

    def __init__(self, alpha: float, checks: int) -> None:
        self.alpha, self.checks, self.used, self.rejected = alpha, checks, 0, 0

    def accept(self, p: float, what: str) -> None:
        """The right program passes this check except with probability `alpha`."""
        self.used += 1
        assert p >= self.alpha, f"{what}: p = {p:.3g} is below {self.alpha:.3g}"

    def reject(self, p: float, fault: str) -> None:
        """A planted fault that the check must catch."""
        self.rejected += 1
        assert p < self.alpha, f"the planted fault was missed ({fault}): p = {p:.3g} is not below {self.alpha:.3g}"


@pytest.fixture
def verdict(request: pytest.FixtureRequest) -> Iterator[Verdict]:
    marker = request.node.get_closest_marker("statistical")
    assert marker is not None, "a statistical test must declare its checks"
    checks = marker.kwargs["checks"]
    scorer = Verdict(SUITE_ALPHA / request.config.stash[_TOTAL], checks)
    yield scorer
    assert scorer.used == checks, f"{scorer.used} checks were made, {checks} declared"
    assert scorer.rejected > 0, "a statistical test must plant a fault"
