"""Reading copies: a copy with its manifest, and the summaries of its numeric columns that several estimators share."""
