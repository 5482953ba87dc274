"""Making copies: plan what to do with each column, run it over a table, and say in a manifest what was done."""
