"""`lacuna guide`: measures this machine, fits the profile, and writes the guide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lacuna import clock
from lacuna.bench.delivery import Delivery, show_written
from lacuna.cli import campaign_command, listen, validate
from lacuna.cli.campaign_command import Effort
from lacuna.cli.options import (
    JsonOption,
    NicOption,
    budget_option,
    command_line,
    exit_statuses,
    is_simulated,
    timeout_option,
    worker_nic,
)
from lacuna.guide import calibration, plan
from lacuna.guide.calibration import Stored
from lacuna.guide.exploration import BOUND, POOL, Explorer
from lacuna.guide.fitting import MOST_ROWS
from lacuna.guide.pairs import Pair, random_pairs
from lacuna.guide.plan import Cell
from lacuna.guide.run_record import Guide
from lacuna.report import guide_tables
from lacuna.worker import remote_host
from lacuna.worker.client import Worker
from lacuna.worker.process import WorkerError
from lacuna.worker.remote_host import RemoteHost
from lacuna.worker.result import begun

QUICK = Effort(budget=17.5, reserve=6.5, silence=6, max_samples=200, second_looks=0.12, explored=0.2)
FULL = Effort(
    budget=87,
    reserve=15,
    silence=20,
    max_samples=400,
    second_looks=0.1,
    explored=0.35,
    most_looks=4,
    most_reserved=0.7,
)
"""The promises are 20 s and 90 s for the whole command, on two slow cores."""

_SHORTEST_FITTED = 12
"""Seconds: what a shorter run measures is too little for a profile, and shall not take the place of a good one."""
_FITTED_EACH_SECOND = 60
"""Rows of a path that are fitted for each second of the budget: so a short run has a short fit."""

HELP = """Measure every method on this machine and write the guide: for this block size and count, use this method.

Two processes on two cores move layouts of many block sizes and counts, warm and cold, those of DDTBench and
those of AI systems, by every method on every path of the NIC. Each is verified, and compared with the better of
two loops that users write. The result is shown here and written to DIR:

\b
  guide.json    every measurement
  report.html   maps, curves, tables; needs no network
  guide.png     the guide as one picture

\b
The prices that it fits to the measurements are the profile by which Lacuna chooses from then on (a run of less
than 12 s measures too little for that). It goes to
$XDG_CONFIG_HOME/lacuna/profiles (~/.config/lacuna/profiles); LACUNA_PROFILE names another file.

A further run refines the profile: it measures other pairs of layouts, and keeps those that it has.

With --validate: how much longer the chosen way takes than the best one, for layouts that no fit has seen. The data
are {"regret_geomean", "regret_p95", "regret_max", "prediction_error_median", "rules", "pairs"}.

With HOST the receiver is on another machine, where `lacuna guide --listen` runs with a NIC of the same kind and the
same version. Both need the same secret, in LACUNA_SECRET or in the file that LACUNA_SECRET_FILE names. The results
are written here (docs/guide/two-machines.md).

With a larger budget it reaches larger transfers, up to 64 MiB, and looks more often at close calls; from 900 s on
it measures all notifications at all sizes, before that only the usual one above 64 KiB.

\b
Examples:
  lacuna guide --quick
  lacuna guide --budget 300 --output results/node17
  lacuna guide --nic model
  lacuna guide --nic verbs:mlx5_0 --listen
  lacuna guide --nic verbs:mlx5_0 node17
  lacuna guide --validate --json validation.json
  LACUNA_PROFILE=node17.json lacuna guide --check
  lacuna guide --quick --json - | jq '.rows[] | select(.behind == 1)'

""" + exit_statuses(
    "a method moved a wrong byte or failed; the files are written and name it. With --check: the profile does not\n"
    "       hold here",
    "the worker is missing, died or fell silent; what was measured is written",
)


@dataclass
class GuideCommand:
    """One run of the command, and what is measured beside the result."""

    quick: bool
    budget: float | None
    nic: str
    host: str | None
    regret: float
    cells: list[Cell] = field(default_factory=list)
    bindings: list[tuple[int, float]] = field(default_factory=list)
    explorers: list[Explorer] = field(default_factory=list)

    @property
    def effort(self) -> Effort:
        return QUICK if self.quick else FULL

    @property
    def seconds(self) -> float:
        return self.budget or self.effort.budget

    @property
    def fits(self) -> bool:
        return self.seconds >= _SHORTEST_FITTED

    def measure(
        self, console: Console, silence: float | None, started: float, remote: RemoteHost | None
    ) -> tuple[Guide | None, WorkerError | None]:
        return campaign_command.measure(
            console,
            worker_nic(self.nic),
            replace(self.effort, silence=silence or self.effort.silence),
            self.effort.deadline(started, self.budget),
            self._prepare,
            remote=remote,
            at_last=self._time_bindings if self.fits else None,
            explorer=self._explorer if self.fits else None,
        )

    def _prepare(self, worker: Worker) -> tuple[Guide, list[Cell]]:
        corpus, hello = worker.corpus(), worker.hello
        if self.quick:
            cells = plan.quick(corpus)
        else:
            most = plan.AI_PAYLOAD_LONG if self.budget and self.budget >= plan.LONG_BUDGET else plan.AI_PAYLOAD
            cells = plan.full(corpus, worker.corpus("ai", most_payload=most), most)
            if self.budget and self.budget >= plan.NOTIFY_BUDGET:
                cells = plan.with_all_notifications(cells)
        simulated = hello.nic.name.startswith("model:")
        self.cells.extend(plan.counted(plan.simulated(cells) if simulated else cells, hello))
        nic = self.nic if self.nic != "local" else ""
        line = command_line("guide", quick=self.quick, budget=self.budget, nic=nic)
        line += f" {self.host}" if self.host else ""
        made = begun(Guide, line, hello.machine, hello.nic, hello.methods)
        made.fault, made.peer = hello.fault, hello.peer
        return made, self.cells

    def _explorer(self, worker: Worker) -> Explorer:
        def pool() -> Sequence[Pair]:
            # Others than the plan's, and than those of the run before, if that is known.
            return random_pairs(POOL, plan.PAIRS_SEED + 1 + calibration.seen_before(worker.hello.nic.name))

        self.explorers.append(Explorer(worker.hello, pool, self.regret))
        return self.explorers[-1]

    def _time_bindings(self, worker: Worker) -> None:
        self.bindings.extend(calibration.measure_bindings(worker))

    def deliver(self, console: Console, result: Guide, delivery: Delivery, *, whole: bool) -> None:
        """Writes the data first, whatever may happen to the fit and the pictures; shows the tables last, to a reader
        who may leave. `whole`: nothing failed."""
        sound = whole and not result.interrupted and not result.fault
        stored: Stored | None = None

        def draw(folder: Path) -> list[Path]:
            nonlocal stored
            if sound and self.fits:
                most_rows = min(MOST_ROWS, int(_FITTED_EACH_SECOND * self.seconds))
                profile = calibration.calibrate(result, self.cells, self.bindings, most_rows)
                stored = Stored(profile, profile.store(result.nic.name)) if profile else None
            # Imported here: matplotlib takes half a second, which `lacuna info` need not spend.
            from lacuna.report import guide_page

            return guide_page.write(result, folder, stored)

        files = delivery.write(console, result.to_json(), "guide.json", draw)
        guide_tables.show(console, result)
        show_written(console, files)
        if stored:
            console.print(f"Lacuna chooses by {stored.file} from now on", soft_wrap=True)
            for note in stored.notes():
                console.print(note, soft_wrap=True)
        if sound and self.fits:
            self._show_regret(console)

    def _show_regret(self, console: Console) -> None:
        for expected in (explorer.expected_regret for explorer in self.explorers):
            if expected is None:
                continue
            said = f"The choice is expected to take {expected:.1%} longer than the best way on average."
            if expected > self.regret:
                said += " A larger --budget, or another run, refines the profile."
            console.print(said, soft_wrap=True)


def guide(
    context: typer.Context,
    host: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST[:PORT]]",
            help="The other machine, where `lacuna guide --listen` runs; with --listen, where to listen.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A coarser guide within 20 s instead of 90 s.")] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go; made if it is not there.")
    ] = Path("lacuna-guide"),
    budget: Annotated[float | None, budget_option("87, with --quick 17.5")] = None,
    nic: NicOption = "local",
    timeout: Annotated[float | None, timeout_option("20, with --quick 6")] = None,
    validates: Annotated[bool, validate.OPTION] = False,
    checks: Annotated[bool, validate.CHECK_OPTION] = False,
    regret: Annotated[
        float,
        typer.Option(
            "--regret",
            metavar="FRACTION",
            min=0,
            max=1,
            help="Beside the plan, measure those random pairs of layouts for which the choice is least certain, until "
            "it is expected to take only so much longer than the best way, on average.",
        ),
    ] = BOUND,
    listens: Annotated[bool, listen.OPTION] = False,
    data: JsonOption = None,
) -> None:
    started = clock.now()
    if (host or listens) and is_simulated(nic):
        raise typer.BadParameter("a simulated NIC has no second machine", param_hint="--nic")
    if checks and (host or listens or validates):
        raise typer.BadParameter("goes without HOST, --listen and --validate", param_hint="--check")
    if listens:
        _refuse_with_listen(context)
        listen.run(nic, host or "", FULL.silence, timeout)
    if checks:
        validate.check(worker_nic(nic), started, Delivery(data, None), timeout or QUICK.silence)
    remote = RemoteHost(remote_host.place(host, "HOST"), remote_host.read_secret()) if host else None
    command = GuideCommand(quick, budget, nic, host, regret)
    _measure(command, started, output, data, timeout, remote, validates=validates)


def _measure(
    command: GuideCommand,
    started: float,
    output: Path,
    data: Path | None,
    timeout: float | None,
    remote: RemoteHost | None,
    *,
    validates: bool,
) -> None:
    own_nic = worker_nic(command.nic)
    if validates and remote and validate.needs_profile(own_nic):
        raise typer.BadParameter(
            f"NIC {command.nic} has no profile yet. Measure first, then validate: the other side ends with each "
            "command",
            param_hint="--validate",
        )
    delivery = Delivery(data, output)
    if validates and not validate.needs_profile(own_nic):
        validate.run(own_nic, delivery, timeout or FULL.silence, remote)
    console = delivery.console()
    result, failure = command.measure(console, timeout, started, remote)
    if result is not None:
        command.deliver(console, result, Delivery(None if validates else data, output), whole=failure is None)
    if validates and failure is None and result and not result.interrupted:
        validate.run(own_nic, delivery, timeout or FULL.silence)
    campaign_command.finish(result, failure)


def _refuse_with_listen(context: typer.Context) -> None:
    """Of a side that listens: it only takes part."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source and source.name == "COMMANDLINE" and parameter.name not in ("host", "listens", "nic", "timeout"):
            raise typer.BadParameter(
                "belongs to the other machine, which measures and writes", param_hint=parameter.opts[0]
            )
