"""Figures for Prometheus. Labels name platforms and outcomes, never chats or people."""

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from hermes.clock import Clock

LAG_INTERVAL = 1.0
"""Seconds between two looks at the loop."""
TURN_BUCKETS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
"""Seconds; from a short answer to the default limit of a turn."""

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """The gateway's figures, in a registry of their own: two gateways in one process do not mix."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.inbound = Counter(
            "hermes_inbound", "Events by what became of them.", ("platform", "outcome"), registry=self._registry
        )
        self.outbound = Counter(
            "hermes_outbound", "Messages by how sending them ended.", ("platform", "state"), registry=self._registry
        )
        self.turns = Counter("hermes_turns", "Turns by how they ended.", ("ending",), registry=self._registry)
        self.turn_seconds = Histogram(
            "hermes_turn_seconds", "How long turns take.", buckets=TURN_BUCKETS, registry=self._registry
        )
        self.model_errors = Counter(
            "hermes_model_errors", "Failed model calls by kind.", ("kind",), registry=self._registry
        )
        self.loop_lag = Gauge("hermes_loop_lag_seconds", "How late the event loop woke up.", registry=self._registry)

    def render(self) -> bytes:
        """All figures in the text format of Prometheus; its media type is `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    async def watch_loop(self, clock: Clock) -> None:
        """Measure the loop's lag until cancelled."""
        while True:
            before = clock.monotonic()
            await clock.sleep(LAG_INTERVAL)
            self.loop_lag.set(max(0.0, clock.monotonic() - before - LAG_INTERVAL))
