"""Lacuna moves data that has gaps, by the fastest way that the machine offers, and says which way it chose and why."""

from lacuna._core import Guide, Layout, __version__, copy

__all__ = ["Guide", "Layout", "__version__", "copy"]
