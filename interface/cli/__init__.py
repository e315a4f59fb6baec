"""The command line: one file for each group of commands, all of them thin faces of the public API.

The path: :mod:`.main` (entry point, exit status) → :mod:`.lazy_group` → a group's file → the
scheduler, the processes or the queries → :mod:`.rendering`. Rules live elsewhere.
"""
