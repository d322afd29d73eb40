"""What the terminal shows of a validation: the choice beside simple rules, and the worst pairs."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from lacuna.bench.validation.validation import Validation
from lacuna.units import gain_text, us_text

_WORST = 8


def show(console: Console, made: Validation) -> None:
    head = made.head()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    if not made.pairs:
        console.print("Nothing was measured.")
        return
    table.add_row("chosen over best", f"{head['regret_geomean']:.4f} on average (geometric mean)")
    table.add_row("", f"{head['regret_p95']:.3f} in the 95th percentile, {head['regret_max']:.2f} at most")
    table.add_row("predicted against measured", f"{head['prediction_error_median']:.1%} apart, median over all ways")
    if made.again:
        table.add_row("measured again", f"{made.again}, since the processes moved nearer to one another or apart")
    console.print(table)
    rules = Table("over best", "average", "95 %", "most", box=None, pad_edge=False)
    for name, found in ({"Lacuna": head} | made.rules).items():
        figures = (found["regret_geomean"], found["regret_p95"], found["regret_max"])
        rules.add_row(name, *(f"{figure:.3f}" for figure in figures), style="bold" if name == "Lacuna" else "")
    console.print(rules)
    worst = sorted(made.pairs, key=lambda p: -p.regret)[:_WORST]
    shown = Table("over best", "layouts", "chosen", "µs", "best", "µs", box=None, pad_edge=False, title="the worst")
    for pair in worst:
        shown.add_row(
            gain_text(pair.regret) if pair.regret >= 1.05 else f"{pair.regret:.2f}×",
            pair.name,
            " ".join(pair.chosen),
            us_text(pair.chosen_us),
            " ".join(pair.best),
            us_text(pair.best_us),
        )
    console.print(shown)
    for warning in made.profile:
        console.print(f"warning: {warning}", markup=False)
