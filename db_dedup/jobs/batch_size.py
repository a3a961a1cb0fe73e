"""How many changes a worker takes at a time."""


class BatchSize:
    """The size of the next batch, learned from those before.

    Attributes:
        limit: no batch is larger.
        changes: so many are to be taken next.
        rate: changes a second, the latest batches counting most; None or 0 while it is not known.
    """

    def __init__(self, limit: int, wanted_seconds: float, first: int | None = None) -> None:
        """Aim at batches that take so long, and begin with a smaller one where `first` says so."""
        self.limit = self._most = limit
        self.changes = limit if first is None else min(limit, first)
        self.rate: float | None = None
        self._asked = self.changes
        self._wanted_seconds = wanted_seconds

    def ask(self, most: int) -> int:
        """How many changes to take now, at most so many."""
        self._asked = min(self.changes, most)
        return self._asked

    def learn(self, changes: int, seconds: float) -> None:
        """Learn from a batch that was handled, if it was full.

        The first one says nothing of the rate: it also loads what later ones find loaded.
        """
        if changes < self._asked:
            return
        seconds = max(seconds, 1e-6)
        factor = min(max(self._wanted_seconds / seconds, 1 / 4), 4)
        # The bound of a batch that was too much is lifted slowly: the next one that is costs time again.
        self._most = min(self.limit, self._most + self._most // 8 + 1)
        self.changes = max(1, min(self._most, int(self.changes * factor)))
        rate = changes / seconds
        if self.rate is None:
            self.rate = 0.0
        else:
            self.rate = rate if not self.rate else 0.7 * self.rate + 0.3 * rate

    def halve(self, changes: int) -> None:
        """Take half of a batch that was too much."""
        self._most = self.changes = max(1, changes // 2)
