"""Results of attacks: estimates of the original, and scores that compare an estimate with the truth."""
