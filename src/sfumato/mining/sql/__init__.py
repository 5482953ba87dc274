"""SQL queries about the original: parsed and counted by DuckDB on the copy, corrected for the perturbation."""
