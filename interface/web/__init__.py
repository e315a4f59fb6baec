"""The web page and the HTTP API (extra ``web``): the same commands and queries, in a browser and
for programs in other languages.

    settings, accounts     what it listens on, who may do what; refuses to be open to a network
    protection, sessions   headers, hosts, origins; signed cookies
    place                  the scheduler, and looks at the health, that all of it asks
    api/                   /api/v1: JSON, bearer tokens, problem+json, OpenAPI
    page/                  the page: HTML from templates, forms that ask for a reason
    serving                the process

Nothing here decides anything: each route asks :class:`horolog.interface.scheduler.Scheduler`. Only
`horolog web` imports this package, so that nobody else pays for a web framework.
"""
