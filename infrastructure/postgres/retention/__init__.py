"""The months of occurrences in Postgres: partitions that are made ahead, and dropped behind."""
