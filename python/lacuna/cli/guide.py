"""`lacuna guide`: measures this machine, fits the profile, and writes the guide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from lacuna import clock
from lacuna.bench import command_exit
from lacuna.bench.delivery import Delivery, show_written
from lacuna.bench.messages.between_ranks import BetweenRanks
from lacuna.bench.mpi import ways_run
from lacuna.cli import campaign_command, listen, validate
from lacuna.cli.campaign_command import Effort
from lacuna.cli.options import (
    HostsOption,
    JsonOption,
    NicOption,
    budget_option,
    command_app,
    command_line,
    exit_statuses,
    find_mpis,
    is_simulated,
    mpi_option,
    timeout_option,
    two_hosts_of,
    worker_nic,
)
from lacuna.guide import calibration, plan
from lacuna.guide.calibration import Stored
from lacuna.guide.exploration import BOUND, POOL, Explorer
from lacuna.guide.fitting import MOST_ROWS
from lacuna.guide.pairs import Pair, random_pairs
from lacuna.guide.plan import Cell
from lacuna.guide.run_record import Guide
from lacuna.mpi.installations import MpiInstallation, MpiInstallationError
from lacuna.mpi.interposer import MpiError
from lacuna.mpi.ways import WaysError
from lacuna.mpi.ways_profile import MpiProfile
from lacuna.report import guide_tables
from lacuna.worker import remote_host
from lacuna.worker.client import Worker
from lacuna.worker.messages import FailedError
from lacuna.worker.process import WorkerError
from lacuna.worker.protocol import written
from lacuna.worker.remote_host import RemoteHost
from lacuna.worker.result import begun

app = command_app()

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

_MPI_BUDGET = 120.0
"""Seconds: the least budget that has time for the MPI on the PATH."""

_MESSAGE_BUDGET = 60.0
"""Seconds: the least budget that has time for the ways of messages."""

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

Behind everything else it measures, in a second, what messages of an exchange among many ranks cost; schedules of
collectives are chosen by that. A budget of 60 s or more, and so the usual one, has 8 s for the ways of messages between
ranks that share memory: eager, streams, direct copies, rendezvous, each forced in turn. Both go into the profile, which
otherwise keeps those that it had.

With --validate: how much longer the chosen way takes than the best one, for layouts that no fit has seen. The data
are {"regret_geomean", "regret_p95", "regret_max", "prediction_error_median", "rules", "pairs"}.

With --mpi it measures an MPI instead: for data with gaps, the MPI's own datatypes, packing by Lacuna, and Lacuna's way
through shared memory, for messages and collectives of two ranks, 256 B to 1 MiB; and messages without gaps. With
--hosts it also measures in which chunks messages go to another host. It shows which way is best, and writes
mpi-LIBRARY.json beside the profiles, by which preloaded programs choose from then on; LACUNA_MPI_PROFILE names another
file. That takes about 20 s for each MPI, with --quick 10, and up to three times as long where the machine moves the
CPUs meanwhile. A budget of 120 s or more has 30 s for the MPI of the mpicc on the PATH, if there is one, so that
`lacuna guide --budget 120` measures both.

The best ways depend on how far the two CPUs are from one another: near, if one reads a line of the cache that the
other one has written in up to 60 ns, as with a common last-level cache, or distant. Times of distant CPUs go to
mpi-LIBRARY-distant.json. Programs find out how far the CPUs of two ranks are, and choose by the times for that.
`taskset -c A,B` in front of the command chooses the two CPUs, which have to belong to two cores.

With HOST the receiver is on another machine, where `lacuna guide --listen` runs with a NIC of the same kind and the
same version. Both need the same secret, in LACUNA_SECRET or in the file that LACUNA_SECRET_FILE names. The results
are written here (docs/guide/two-machines.md).

With a larger budget it reaches larger transfers, up to 64 MiB, and looks more often at close calls; from 900 s on
it measures all notifications at all sizes, before that only the usual one above 64 KiB.

\b
Examples:
  lacuna guide --quick
  lacuna guide --budget 300 --output results/node17
  lacuna guide --mpi mpicc
  lacuna guide --mpi mpicc --hosts node17,node18
  taskset -c 0,16 lacuna guide --mpi mpicc
  lacuna guide --mpi openmpi=/opt/openmpi/bin/mpicc --mpi mpich=/opt/mpich/bin/mpicc
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

    @cached_property
    def mpi(self) -> MpiInstallation | None:
        """The one of the PATH, if the budget has time for its ways. They are measured last."""
        has_time = not self.quick and self.seconds >= _MPI_BUDGET
        return next(iter(find_mpis(())), None) if has_time and self.nic == "local" and not self.host else None

    @cached_property
    def between_ranks(self) -> BetweenRanks:
        """Behind everything else of this NIC. Prices of exchanges take a second, so every profile gets them."""
        has_messages = not self.quick and self.seconds >= _MESSAGE_BUDGET and self.nic == "local" and not self.host
        return BetweenRanks(worker_nic(self.nic), self.fits and not self.host, has_messages)

    def measure(
        self, console: Console, silence: float | None, started: float, remote: RemoteHost | None
    ) -> tuple[Guide | None, WorkerError | None]:
        return campaign_command.measure(
            console,
            worker_nic(self.nic),
            replace(self.effort, silence=silence or self.effort.silence),
            self.effort.deadline(started, self.budget)
            - (ways_run.SECONDS if self.mpi else 0)
            - self.between_ranks.seconds,
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
                if profile:
                    found = self.between_ranks
                    profile = replace(profile, messages=found.messages, exchanges=found.exchanges)
                stored = Stored(profile, profile.store(result.nic.name)) if profile else None
            # Imported here: matplotlib takes half a second, which `lacuna info` need not spend.
            from lacuna.report import guide_page

            return guide_page.write(result, folder, stored)

        files = delivery.write(console, result.to_json(), "guide.json", draw)
        guide_tables.show(console, result)
        self.between_ranks.show(console)
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


@app.command(help=HELP)
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
    mpi: Annotated[
        list[str] | None,
        mpi_option("Measure the ways of this MPI, by its compiler wrapper, and nothing else; may be given often."),
    ] = None,
    hosts: HostsOption = None,
    data: JsonOption = None,
) -> None:
    started = clock.now()
    if mpi:
        beside = ("mpi", "hosts", "quick", "timeout", "data")
        _refuse_beside(context, beside, "goes without --mpi, which measures MPIs alone")
        _measure_mpis(find_mpis(mpi), two_hosts_of(hosts), quick, timeout, Delivery(data, None))
    if hosts:
        raise typer.BadParameter("goes with --mpi, whose ranks it starts there", param_hint="--hosts")
    if (host or listens) and is_simulated(nic):
        raise typer.BadParameter("a simulated NIC has no second machine", param_hint="--nic")
    if checks and (host or listens or validates):
        raise typer.BadParameter("goes without HOST, --listen and --validate", param_hint="--check")
    if listens:
        allowed = ("host", "listens", "nic", "timeout")
        _refuse_beside(context, allowed, "belongs to the other machine, which measures and writes")
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
    between_ranks = command.between_ranks
    if failure is None and result and not result.interrupted:
        between_ranks.measure(console, timeout or FULL.silence)
    if result is not None:
        command.deliver(console, result, Delivery(None if validates else data, output), whole=failure is None)
        result.interrupted = result.interrupted or between_ranks.interrupted
    if command.mpi and failure is None and result and not result.interrupted:
        _measure_mpi_of_path(console, command.mpi)
    if validates and failure is None and result and not result.interrupted:
        validate.run(own_nic, delivery, timeout or FULL.silence)
    if isinstance(between_ranks.failure, FailedError):
        _fail(between_ranks.failure)
    campaign_command.finish(result, failure or between_ranks.failure)


def _measure_mpis(
    installations: Sequence[MpiInstallation],
    hosts: tuple[str, str] | None,
    quick: bool,
    timeout: float | None,
    delivery: Delivery,
) -> NoReturn:
    console = delivery.console()
    try:
        with command_exit.guarded():
            profiles = [_measure_mpi(console, one, hosts, quick, timeout) for one in installations]
    except (MpiError, MpiInstallationError) as e:
        command_exit.fail(str(e))
    except WaysError as e:
        _fail(e)
    delivery.write_json(written({"mpis": [profile.document() for profile in profiles]}) + "\n")
    raise typer.Exit


def _measure_mpi_of_path(console: Console, installation: MpiInstallation) -> None:
    """An MPI that cannot be used is none of the guide's faults; one that moves a wrong byte is."""
    try:
        with command_exit.guarded():
            _measure_mpi(console, installation, None, False, None, tries=1)  # the budget has time for one
    except (MpiError, MpiInstallationError) as e:
        console.print(f"No ways of MPI programs were measured: {e}", soft_wrap=True, markup=False)
    except WaysError as e:
        _fail(e)


def _measure_mpi(
    console: Console,
    installation: MpiInstallation,
    hosts: tuple[str, str] | None,
    quick: bool,
    timeout: float | None,
    tries: int = ways_run.TRIES,
) -> MpiProfile:
    line = command_line("guide", [installation], hosts=",".join(hosts or ()), quick=quick)
    return ways_run.run(console, installation, line, hosts, quick, timeout, tries)


def _fail(error: WaysError | FailedError) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"ERROR: {error}", markup=False)
    raise typer.Exit(command_exit.MEASUREMENT_FAILED)


def _refuse_beside(context: typer.Context, allowed: Sequence[str], why: str) -> None:
    """Ends the command where an option was given that is not one of these parameters."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source and source.name == "COMMANDLINE" and parameter.name not in allowed:
            raise typer.BadParameter(why, param_hint=parameter.opts[0])
