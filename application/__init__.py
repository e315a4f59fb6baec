"""What the system does: commands, queries, the scanner and the worker, and the ports they call.

These loops only read, decide, append and publish: every rule is in the domain. Each port is a small
Protocol in the module that calls it; :mod:`horolog.infrastructure` holds the adapters.
"""
