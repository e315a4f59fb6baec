"""The HTTP API, /api/v1: each route reads what was asked, calls the scheduler, and writes JSON.

asking          who asks, which parameters there are, pages and their links
bodies, answers what goes in and what comes out, as OpenAPI states it
preconditions   ETag and If-Match: a job's version
repeated        Idempotency-Key: what a repeated request is answered
jobs, commands, occurrences, letters, log, audit, system    the routes
"""
