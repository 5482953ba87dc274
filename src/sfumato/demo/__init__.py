"""The demonstration: a synthetic clinic, three recipients at three trust levels, and the effect of their collusion."""
