"""A form: JSON that was written once, with gaps where others of its kind have other values.

Writing a model costs many times what its few different values cost. A form is cut out of what the
model itself wrote, so there is no second way of writing: only the values are put in anew.
"""

from collections.abc import Sequence


class JsonForm:
    """``names`` are the fields that differ, in the order in which the JSON object has them."""

    def __init__(self, written: bytes, values: Sequence[tuple[str, bytes]]) -> None:
        """``values`` are those fields' JSON within ``written``, from which the form is cut."""
        fixed: list[bytes] = []
        begin = 0
        for name, value in values:
            # Quotes within a text are escaped, so no text can look like the name of a field.
            label = b'"%s":' % name.encode()
            place = written.index(label + value, begin) + len(label)
            fixed.append(written[begin:place])
            begin = place + len(value)
        fixed.append(written[begin:])
        self._format = b"%b".join(part.replace(b"%", b"%%") for part in fixed)

    def filled(self, *values: bytes) -> bytes:
        """The JSON with these values, each JSON itself, in the form's order."""
        return self._format % values
