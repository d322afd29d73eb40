"""The `lacuna` command."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lacuna import (
    __version__,
    bench,
    calibrate,
    clock,
    command,
    device,
    explain,
    far,
    listening,
    mpi_command,
    plan,
    tables,
    validate_command,
)
from lacuna import compare as comparing
from lacuna._core import freed_memory_is_told
from lacuna.calibrate import Stored
from lacuna.command import JsonOption, NicOption, Pace
from lacuna.explore import BOUND, POOL, Explorer
from lacuna.fields import SchemaError
from lacuna.fitting import MOST_ROWS
from lacuna.pairs import Pair, random_pairs
from lacuna.paper import command as paper
from lacuna.plan import Cell
from lacuna.record import Guide, read_guide
from lacuna.schema import PROTOCOL, Hello
from lacuna.store import write_whole
from lacuna.worker import Worker, WorkerError, find_worker

_QUICK = Pace(budget=17.5, reserve=6.5, silence=6, max_samples=200, second_looks=0.12, explored=0.2)
_FULL = Pace(
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

_OUTPUT = Path("lacuna-guide")

app = typer.Typer(
    name="lacuna",
    help="Moves data that has gaps, by the fastest way that this machine offers, and says which way that is.",
    epilog="Start with: lacuna guide --quick",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app)
app.add_typer(paper.app)
app.add_typer(mpi_command.app)


def main() -> None:
    """The entry point."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no µ gets a question mark, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="lacuna")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"lacuna {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


@app.command()
def guide(
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
    ] = _OUTPUT,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            min=5,
            help="Wall time of the whole command; cells that do not fit are left out. [default: 87, with --quick 17.5]",
            show_default=False,
        ),
    ] = None,
    nic: NicOption = "local",
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.1,
            help="Give up when the worker is silent for so long. [default: 20, with --quick 6]",
            show_default=False,
        ),
    ] = None,
    validate: Annotated[
        bool,
        typer.Option(
            "--validate",
            help="Judge the profile's choices on 500 random pairs of layouts that it was not fitted to. Measures and "
            "fits first if this NIC has no profile.",
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Say within 5 s whether the profile holds on this machine, also one that was made on another of its "
            "kind. Changes nothing.",
        ),
    ] = False,
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
    listen: Annotated[
        bool,
        typer.Option(
            "--listen",
            help="Be the other machine: wait for a `lacuna guide HOST`, take part in what it measures, end with it. "
            f"[default: every address, port {far.PORT}]",
        ),
    ] = False,
    data: JsonOption = None,
) -> None:
    """Measure every method on this machine and write the guide: for this block size and count, use this method.

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

    \b
    Exit status:
      0    all is well
      1    a method moved a wrong byte or failed; the files are written and name it. With --check: the profile does not
           hold here
      2    wrong usage
      3    the worker is missing, died or fell silent; what was measured is written
      130  interrupted by Ctrl-C or SIGTERM; what was measured is written
    """
    started = clock.now()
    pace = _QUICK if quick else _FULL
    if (host or listen) and command.is_simulated(nic):
        raise typer.BadParameter("a simulated NIC has no second machine", param_hint="--nic")
    if check and (host or listen or validate):
        raise typer.BadParameter("goes without HOST, --listen and --validate", param_hint="--check")
    if listen:
        _refuse_with_listen(quick=quick, budget=budget, validate=validate, data=data, output=output)
        where = far.place(host or "", "--listen", far.EVERYWHERE)
        listening.run(nic, where, far.read_secret(), _FULL.silence, timeout or listening.COMES_WITHIN)
    other = far.Far(far.place(host, "HOST"), far.read_secret()) if host else None
    worker_nic = command.worker_nic(nic)
    if validate and other and validate_command.needs_profile(worker_nic):
        raise typer.BadParameter(
            f"NIC {nic} has no profile yet. Measure first, then validate: the other side ends with each command",
            param_hint="--validate",
        )
    if check:
        command.prepare_json(data)
        validate_command.check(worker_nic, started, data, timeout or _QUICK.silence)
    deadline = pace.deadline(started, budget)
    command.prepare(output)
    command.prepare_json(data)
    if validate and not validate_command.needs_profile(worker_nic):
        validate_command.run(worker_nic, output, data, timeout or _FULL.silence, other)
    console = command.console(to_stderr=command.is_stdout(data))
    measured: list[Cell] = []
    bindings: list[tuple[int, float]] = []
    seconds = budget or pace.budget

    def prepare(worker: Worker) -> tuple[Guide, list[Cell]]:
        corpus = worker.corpus()

        if quick:
            cells = plan.quick(corpus)
        else:
            most = plan.AI_PAYLOAD_LONG if budget and budget >= plan.LONG_BUDGET else plan.AI_PAYLOAD
            cells = plan.full(corpus, worker.corpus("ai", most_payload=most), most)
            if budget and budget >= plan.NOTIFY_BUDGET:
                cells = plan.with_all_notifications(cells)
        simulated = worker.hello.nic.name.startswith("model:")
        measured.extend(plan.counted(plan.simulated(cells) if simulated else cells, worker.hello))
        return _new_guide(worker.hello, quick=quick, budget=budget, nic=nic, host=host), measured

    explorers: list[Explorer] = []

    def explorer(worker: Worker) -> Explorer:
        def pool() -> Sequence[Pair]:
            # Others than the plan's, and than those of the run before, if that is known.
            return random_pairs(POOL, plan.PAIRS_SEED + 1 + calibrate.seen_before(worker.hello.nic.name))

        made = Explorer(worker.hello, pool, regret)
        explorers.append(made)
        return made

    def time_bindings(worker: Worker) -> None:
        bindings.extend(calibrate.measure_bindings(worker))

    outcome = command.measure(
        console,
        worker_nic,
        replace(pace, silence=timeout or pace.silence),
        deadline,
        prepare,
        far=other,
        at_last=time_bindings if seconds >= _SHORTEST_FITTED else None,
        explorer=explorer if seconds >= _SHORTEST_FITTED else None,
    )
    if outcome.result is not None:
        sound = outcome.failure is None and not outcome.result.interrupted and not outcome.result.fault
        fits = sound and seconds >= _SHORTEST_FITTED
        most_rows = min(MOST_ROWS, int(_FITTED_EACH_SECOND * seconds))

        def fit() -> calibrate.Profile | None:
            assert outcome.result
            return calibrate.calibrate(outcome.result, measured, bindings, most_rows)

        _deliver(console, outcome.result, output, None if validate else data, fit if fits else lambda: None)
        for made in explorers:
            if fits and made.expected_regret is not None:
                said = f"The choice is expected to take {made.expected_regret:.1%} longer than the best way on average."
                if made.expected_regret > regret:
                    said += " A larger --budget, or another run, refines the profile."
                console.print(said, soft_wrap=True)
    if validate and outcome.failure is None and outcome.result and not outcome.result.interrupted:
        validate_command.run(worker_nic, output, data, timeout or _FULL.silence)
    command.finish(outcome.result, outcome.failure)


@app.command()
def info(
    nic: NicOption = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show this machine, the NIC's paths and limits, the methods, the RDMA devices, and the GPUs.

    Of each device: what it advertises and what its queue pairs were found to take, UMR or why not, memory windows,
    on-demand paging, ports, and the GID and MTU that connections would use. Also whether registered memory may stay so:
    whether the kernel tells of memory that is freed.

    \b
    Examples:
      lacuna info
      lacuna info --json | jq .nic.max_sge

    Exit status: 0, 2 for wrong usage, 3 if the worker is missing or fails.
    """
    try:
        with Worker(find_worker(), command.worker_nic(nic), _FULL.silence) as worker:
            hello, devices = worker.hello, worker.devices()
    except WorkerError as e:
        command.finish(None, e)
    untold = freed_memory_is_told()
    gpus, no_gpus = device.look()
    if as_json:
        said = {"protocol": PROTOCOL, **asdict(hello), "devices": asdict(devices), "freed_memory_untold": untold}
        print(json.dumps({**said, "gpus": gpus, "no_gpus": no_gpus}, indent=2))
    else:
        tables.show_info(command.console(), hello, devices, untold)
        tables.show_gpus(command.console(), gpus, no_gpus)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A guide.json, or the directory that holds one.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one: of another machine, version or run.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write compare.html here.", show_default=False),
    ] = None,
    data: JsonOption = None,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="End with 1 if the guides name different best methods that are more than 5 % apart, or if best "
            "times differ by more than the noise.",
        ),
    ] = False,
) -> None:
    """Compare two guides side by side: two machines, two versions, two runs. What is more than the noise is marked.

    Of one machine only cells count that both runs measured in the same state of it.

    \b
    Examples:
      lacuna compare monday/guide.json tuesday/guide.json
      lacuna compare node1 node2 --output node1-node2
      lacuna compare before after --exit-code || echo changed

    \b
    Exit status:
      0    all is well
      1    with --exit-code: the guides differ
      2    wrong usage, or a file that is no guide
    """
    guides = [_read(path, name) for path, name in ((a, "A"), (b, "B"))]
    if output:
        command.prepare(output)
    command.prepare_json(data)
    compared = comparing.compare(*guides)
    if not compared.pairs:
        raise typer.BadParameter("the two guides have no cell in common", param_hint="A B")
    console = command.console(to_stderr=command.is_stdout(data))
    # Imported here: matplotlib takes half a second, which `lacuna info` need not spend.
    from lacuna import compare_view

    compare_view.show(console, compared)
    command.write_json(data, json.dumps(compared.to_json(), indent=1) + "\n")
    if output:
        console.print("Written: " + ", ".join(str(f) for f in compare_view.write(compared, output)), soft_wrap=True)
    raise typer.Exit(1 if exit_code and (compared.beyond_close or compared.changed) else 0)


app.command()(explain.explain)
app.command(
    "mpirun",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)(mpi_command.run)


def _read(path: Path, name: str) -> Guide:
    file = path / "guide.json" if path.is_dir() else path
    try:
        return read_guide(file)
    except OSError as e:
        raise typer.BadParameter(f"cannot read {file}: {e.strerror}", param_hint=name) from e
    except SchemaError as e:
        raise typer.BadParameter(str(e), param_hint=name) from e


def _refuse_with_listen(*, quick: bool, budget: float | None, validate: bool, data: Path | None, output: Path) -> None:
    """Of a side that listens: it only takes part."""
    given = {
        "--quick": quick,
        "--budget": budget is not None,
        "--validate": validate,
        "--json": data is not None,
        "--output": output != _OUTPUT,
    }
    for option, is_given in given.items():
        if is_given:
            raise typer.BadParameter("belongs to the other machine, which measures and writes", param_hint=option)


def _new_guide(hello: Hello, *, quick: bool, budget: float | None, nic: str, host: str | None) -> Guide:
    line = "lacuna guide" + " --quick" * quick
    if budget is not None:
        line += f" --budget {budget:g}"
    if nic != "local":
        line += f" --nic {nic}"
    if host:
        line += f" {host}"
    return Guide(
        __version__,
        command.created(),
        line,
        hello.machine,
        hello.nic,
        hello.methods,
        fault=hello.fault,
        peer=hello.peer,
    )


def _deliver(
    console: Console,
    result: Guide,
    output: Path,
    json_file: Path | None,
    fit: Callable[[], calibrate.Profile | None],
) -> None:
    """Writes the data first, whatever may happen to the fit and the pictures; shows the tables last, to a reader who
    may leave."""
    data = output / "guide.json"
    text = result.to_json()
    write_whole(data, text)
    command.write_json(json_file, text)
    with console.status("fitting prices"):
        profile = fit()
        stored = Stored(profile, profile.store(result.nic.name)) if profile else None
    with console.status("drawing the report"):
        # Imported here: matplotlib takes half a second, which `lacuna info` need not spend.
        from lacuna import report

        files = [data, *report.write(result, output, stored)]
    tables.show(console, result)
    console.print("Written: " + ", ".join(str(f) for f in files), soft_wrap=True)
    if stored:
        console.print(f"Lacuna chooses by {stored.file} from now on", soft_wrap=True)
        for note in stored.notes():
            console.print(note, soft_wrap=True)
