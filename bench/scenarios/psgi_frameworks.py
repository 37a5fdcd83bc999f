"""The frameworks of the article behind PSGI, next to the servers that they may come from."""

from pathlib import Path

import catalogue_perl as perl
from alternate import Comparison, Contender, Sample, in_turn
from report import Outcome, Row, both, cpu_row, met, number, times
from scenarios.psgi import measured, memory_row
from servers import Recipe, started
from settings import BENCH, Settings

FRAMEWORKS = {"Mojolicious": "hola_mojolicious", "Dancer2": "hola_dancer2", "Web::Simple": "hola_web_simple"}
ALONE = "no server"

RATIO_MIN = 1.1


def run(settings: Settings) -> Outcome:
    outcome = Outcome(
        notes=["Frameworks of PSGI: the application alone is called in a loop by one process, without a server."]
    )
    for framework, name in FRAMEWORKS.items():
        app = BENCH / "apps" / "perl" / f"{name}.psgi"
        ours = perl.parkade(workers=2, app=app)
        starman, uwsgi = peers = perl.starman(workers=10, app=app), perl.uwsgi(processes=2, app=app)
        contenders: dict[str, Contender] = {recipe.name: _served(recipe, settings) for recipe in (ours, *peers)}
        contenders[ALONE] = _alone(app, settings)
        found = in_turn(settings, contenders)
        outcome.comparisons[f"psgi {framework}"] = found
        outcome.rows += [
            _rate_row(found, ours.name, f"`/hola/{{name}}` in {framework}, 2 workers", starman.name),
            _rate_row(found, ours.name, "– and processes in C", uwsgi.name),
            cpu_row(found, ours.name, starman.name),
            _own_row(found, ours.name, framework),
            memory_row(found, ours.name, starman.name),
        ]
    return outcome


def _served(recipe: Recipe, settings: Settings) -> Contender:
    def take() -> Sample:
        with started(recipe) as server:
            return measured(server, settings.seconds)

    return take


def _alone(app: Path, settings: Settings) -> Contender:
    return lambda: perl.called(app, "/hola/wrk", settings.seconds)


def _rate_row(found: Comparison, name: str, work: str, peer: str) -> Row:
    ratio = found.ratio(name, peer, "per_second")
    return Row(
        work=work,
        target=f"≥ {RATIO_MIN} × {peer}",
        parkade=number(found.median(name, "per_second"), "/s"),
        peer=f"{peer} {number(found.median(peer, 'per_second'), '/s')}",
        ratio=times(ratio),
        met=both(met(ratio, at_least=RATIO_MIN), met(found.worst(name, "failed"), at_most=0)),
    )


def _own_row(found: Comparison, name: str, framework: str) -> Row:
    return Row(
        work=f"– of it, {framework}'s own: CPU for each call without a server",
        target="–",
        parkade=number(found.median(ALONE, "cpu_us"), " µs", 1),
        peer=f"{ALONE}, 1 process: {number(found.median(ALONE, 'per_second'), ' calls/s')}",
        ratio=times(found.ratio(ALONE, name, "cpu_us")),
    )
