"""What is wrong with the world just now: outages, cuts, losses, slowness; by kind and target."""

from collections.abc import Callable

EVERYBODY = ""


class Weather:
    """Each kind of trouble with those whom it concerns and how bad it is; troubles may overlap."""

    def __init__(self) -> None:
        self._troubles: dict[str, list[tuple[str, float]]] = {}
        self.calmed: list[Callable[[str], None]] = []
        """Told of the kind when one trouble of it has ended."""

    def begin(self, kind: str, target: str, amount: float) -> None:
        self._troubles.setdefault(kind, []).append((target, amount))

    def end(self, kind: str, target: str, amount: float) -> None:
        troubles = self._troubles.get(kind, [])
        if (target, amount) in troubles:
            troubles.remove((target, amount))
            if not troubles:
                del self._troubles[kind]
            for listener in self.calmed:
                listener(kind)

    def clear(self) -> None:
        kinds, self._troubles = list(self._troubles), {}
        for kind in kinds:
            for listener in self.calmed:
                listener(kind)

    def amount(self, kind: str, name: str) -> float:
        """How bad it is for the process ``name``; 0 where all is well."""
        troubles = self._troubles.get(kind)
        if not troubles:
            return 0.0
        return max((a for target, a in troubles if name.startswith(target)), default=0.0)
