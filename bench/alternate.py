"""Measures servers in turn (A B A B …), so that changes of the machine affect all of them alike."""

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from catalogue import PARKADE
from servers import Recipe, Server, Unavailable, started
from settings import Settings

Sample = dict[str, float]
Measure = Callable[[Server], Sample]
Contender = Callable[[], Sample]


@dataclass(slots=True)
class Comparison:
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """Why a server was not measured, or not completely."""

    def median(self, name: str, key: str) -> float | None:
        values = [sample[key] for sample in self.samples.get(name, [])]
        return statistics.median(values) if values else None

    def worst(self, name: str, key: str) -> float | None:
        return max((sample[key] for sample in self.samples.get(name, [])), default=None)

    def ratio(self, name: str, peer: str, key: str) -> float | None:
        """The ratio of the medians, the first server's to the other's."""
        ours, theirs = self.median(name, key), self.median(peer, key)
        return ours / theirs if ours is not None and theirs else None


def alternate(settings: Settings, recipes: Sequence[Recipe], measure: Measure, runs: int | None = None) -> Comparison:
    """Starts a new server for each measurement."""

    def contender(recipe: Recipe) -> Contender:
        def take() -> Sample:
            with started(recipe) as server:
                return measure(server)

        return take

    return in_turn(settings, {recipe.name: contender(recipe) for recipe in recipes}, runs)


def in_turn(settings: Settings, contenders: Mapping[str, Contender], runs: int | None = None) -> Comparison:
    """The measurements by name; a measurement that fails is not repeated."""
    found = Comparison()
    for run in range(runs or settings.runs):
        for name, take in contenders.items():
            if name in found.skipped:
                continue
            if settings.peers_only and name.startswith(PARKADE):
                found.skipped[name] = "only peers were asked for"
                continue
            if settings.ours_only and not name.startswith(PARKADE):
                found.skipped[name] = "only Parkade was asked for"
                continue
            _measure_once(found, name, take, run)
    return found


def _measure_once(found: Comparison, name: str, take: Contender, run: int) -> None:
    try:
        sample = take()
    except (Unavailable, OSError) as reason:
        found.skipped[name] = str(reason)
        print(f"    {name}: skipped, {reason}", file=sys.stderr)
        return
    found.samples.setdefault(name, []).append(sample)
    numbers = "  ".join(f"{key} {value:,.6g}" for key, value in sample.items())
    print(f"    {name} #{run + 1}: {numbers}", file=sys.stderr)
