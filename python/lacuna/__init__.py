"""Lacuna moves data that has gaps, by the fastest way that the machine offers, and says which way it chose and why."""

from lacuna._core import Exposed, Guide, Layout, Status, __version__, copy
from lacuna.exchanges import Exchange
from lacuna.messages import ANY_SOURCE, ANY_TAG, Communicator, Request, connect, wait_all, wait_any

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "Communicator",
    "Exchange",
    "Exposed",
    "Guide",
    "Layout",
    "Request",
    "Status",
    "__version__",
    "connect",
    "copy",
    "wait_all",
    "wait_any",
]
