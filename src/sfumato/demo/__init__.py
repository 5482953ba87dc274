"""A clinic's table, three recipients, and what they can reconstruct together: the idea in one folder."""
