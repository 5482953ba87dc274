"""Table input and output: readers, writers, partitioned tables, object stores, record ids, views and row order."""
