"""The queries of a client: bounded, paged by key, served by an index.

A page goes on from ``after``, the last key of the page before, so a listing costs the same at its
millionth row as at its first, and rows that come or go meanwhile shift nothing.
"""
