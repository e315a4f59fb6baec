"""What we know: read models that are folded from the log and can be thrown away and folded again.

The rows are functions of the domain's states (:mod:`rows`), and the states are folds of events;
the same functions serve the transaction that appends an event and the rebuild that reads it years
later.
"""
