"""Statistical profile of the original: estimates for every column, what a trust level can answer, and a report."""
