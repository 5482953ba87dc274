"""Conformance suites for plug-ins: what every mechanism, attack, estimator, engine and figure must do.

An author of a plug-in runs them on a class of their own, in any test runner:

    from sfumato.testing import check_mechanism

    def test_my_mechanism():
        check_mechanism(MyMechanism)

Each suite raises `AssertionError`, with the name of the check, at the first thing that does not hold. The members of
Sfumato itself pass the same suites.
"""

from sfumato.testing.attacks import check_attack
from sfumato.testing.engines import check_engine
from sfumato.testing.experiments import check_experiment
from sfumato.testing.mechanisms import check_mechanism
from sfumato.testing.miners import check_miner

__all__ = ["check_attack", "check_engine", "check_experiment", "check_mechanism", "check_miner"]
