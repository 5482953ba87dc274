"""Plain frozen records: what an owner says (levels, policy) and what a table looks like."""
