"""The log and its read models on Postgres 14 or newer.

SQL stands beside the code that runs it; tables and functions are in numbered migrations.
"""
