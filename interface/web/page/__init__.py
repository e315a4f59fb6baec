"""The page: HTML that the server makes, htmx to keep it lively, forms that ask for a reason.

    asking, rendering, refusals    who asks, forms and their tokens; templates; what went wrong
    login                          name and secret, where there are accounts
    now, jobs, runs, letters, figures, system, past    the views
    commands                       what the forms do
    timeline, calendar, plots      pictures as SVG, which are also text

It works without scripts, too: htmx only spares reloading.
"""
