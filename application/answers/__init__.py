"""What a client gets back: frozen values, typed, each with a JSON form.

They are pictures of a moment. Nothing in them changes when the log goes on: ask again.
"""
