"""Disclosure risk of a copy before it is released: residual risk against a policy's thresholds, and breach probability.

`thresholds` runs every attack on a sample of a copy and refuses the release if one does better than the policy allows;
`breach` computes how many known records reveal how much of a rotated or projected copy (giannella2010).
"""
