"""Numbers as people read them."""

from __future__ import annotations


def bytes_text(value: int) -> str:
    """16 B, 4 KiB, 1.5 MiB."""
    amount, unit = float(value), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} {unit}" if amount >= 100 or amount == int(amount) else f"{amount:.3g} {unit}"


def us_text(value: float) -> str:
    """Microseconds with three significant digits and a separator for thousands: 0.85, 12.3, 1,240."""
    if value < 10:
        return f"{value:.2f}"
    if value < 100:
        return f"{value:.1f}"
    rounded = float(f"{value:.3g}") if value < 1e4 else value
    return f"{rounded:,.0f}"


def gain_text(ratio: float) -> str:
    """1.0×, 2.3×, 14×."""
    return f"{ratio:.1f}×" if ratio < 9.95 else f"{ratio:.0f}×"


def yes(value: bool) -> str:
    return "yes" if value else "no"


def shortened(name: str, most: int) -> str:
    """At most so many characters."""
    return name if len(name) <= most else name[: most - 1] + "…"
