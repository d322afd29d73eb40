"""What `lacuna guide` measures between two ranks of a communicator: prices of exchanges, and the ways of messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from lacuna import clock
from lacuna.bench import command_exit
from lacuna.bench.messages import ways_table
from lacuna.bench.progress import Meter
from lacuna.worker import exchange_prices, messages
from lacuna.worker.client import find_worker
from lacuna.worker.exchange_prices import WaitedError
from lacuna.worker.messages import CELLS, FailedError, MovedError
from lacuna.worker.process import WorkerError

_MESSAGE_SECONDS, _EXCHANGE_SECONDS = 8.0, 1.0
"""Of a budget, as far as is known before."""
_MESSAGE_MS = 40.0
"""For the race of the ways at one size and run length."""
_EXCHANGE_MS = 300.0
"""For all exchanges together: some hundred rounds of five."""


@dataclass
class BetweenRanks:
    """One run; what it finds goes into the profile."""

    nic: str
    """As the worker takes it."""
    has_exchanges: bool
    has_messages: bool
    exchanges: dict[str, float] | None = None
    messages: dict[str, Any] | None = None
    failure: WorkerError | FailedError | None = None
    interrupted: bool = False
    """The profile of everything else is whole, and is kept."""

    @property
    def seconds(self) -> float:
        return _MESSAGE_SECONDS * self.has_messages + _EXCHANGE_SECONDS * self.has_exchanges

    def measure(self, console: Console, silence: float) -> None:
        if self.has_exchanges:
            self._guarded(console, "prices of exchanges", lambda: self._measure_exchanges(silence))
        if self.has_messages and not self.interrupted and not self.failure:
            self._guarded(console, "ways of messages", lambda: self._measure_messages(console, silence))

    def _guarded(self, console: Console, what: str, measure: Callable[[], None]) -> None:
        try:
            with command_exit.terminable():
                measure()
        except KeyboardInterrupt:
            self.interrupted = True
            console.print(f"No {what} were measured: interrupted. The rest is kept", soft_wrap=True)
        except (MovedError, WaitedError) as e:
            console.print(f"No {what} were measured: {e}", soft_wrap=True, markup=False)
        except (WorkerError, FailedError) as e:
            self.failure = e

    def _measure_exchanges(self, silence: float) -> None:
        self.exchanges = exchange_prices.measure(find_worker(), self.nic, _EXCHANGE_MS, silence)

    def _measure_messages(self, console: Console, silence: float) -> None:
        ends, cells = clock.now() + _MESSAGE_SECONDS, len(CELLS)
        with Meter(console, cells, _MESSAGE_SECONDS, "sizes of messages") as meter:

            def told(done: int) -> None:
                meter.advance(done, cells, ends - clock.now())

            self.messages = messages.measure(find_worker(), _MESSAGE_MS, silence, told)

    def show(self, console: Console) -> None:
        if self.exchanges:
            prices = ", ".join(f"{name} {ns:g} ns" for name, ns in self.exchanges.items())
            console.print(f"Exchanges among many ranks, prices: {prices}", soft_wrap=True)
        if self.messages:
            ways_table.show(console, self.messages)
