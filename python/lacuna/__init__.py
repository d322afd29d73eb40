"""Lacuna moves data that has gaps, by the fastest way that the machine offers, and says which way it chose and why."""

from lacuna import device
from lacuna._core import Exposed, Guide, Layout, Status, __version__
from lacuna.arrays import copy
from lacuna.exchanges import Exchange
from lacuna.messages import ANY_SOURCE, ANY_TAG, Communicator, Request, connect, wait_all, wait_any
from lacuna.resharding import reshard

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
    "device",
    "reshard",
    "wait_all",
    "wait_any",
]
