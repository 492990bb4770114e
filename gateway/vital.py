"""By when a task should be heard of again: what the watchdog asks of each part that must not stop."""

from hermes.clock import Clock


class Vital:
    """One task's own word on when it will be back. Nothing is expected until it says so."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: float | None = None

    def expect(self, seconds: float) -> None:
        """I am alive, and will say so again within this time."""
        self._due = self._clock.monotonic() + seconds

    def rest(self) -> None:
        """I am alive, and wait for something that may never come."""
        self._due = None

    def late(self) -> float:
        """Seconds past the time that was named; 0.0 while all is well."""
        return 0.0 if self._due is None else max(0.0, self._clock.monotonic() - self._due)
