"""Measures servers in turn (A B A B …), so that what the machine does meanwhile meets all of them alike."""

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from catalogue import PARKADE
from servers import Recipe, Server, Unavailable, started
from settings import Settings

Sample = dict[str, float]
Measure = Callable[[Server], Sample]


@dataclass(slots=True)
class Comparison:
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """Why a server was not measured, or not to the end."""

    def median(self, name: str, key: str) -> float | None:
        values = [sample[key] for sample in self.samples.get(name, [])]
        return statistics.median(values) if values else None

    def worst(self, name: str, key: str) -> float | None:
        return max((sample[key] for sample in self.samples.get(name, [])), default=None)

    def ratio(self, name: str, peer: str, key: str) -> float | None:
        """The median of the first for each of the other's."""
        ours, theirs = self.median(name, key), self.median(peer, key)
        return ours / theirs if ours is not None and theirs else None


def alternate(settings: Settings, recipes: Sequence[Recipe], measure: Measure, runs: int | None = None) -> Comparison:
    """A fresh server for each measurement; one that fails is not measured again."""
    found = Comparison()
    for run in range(runs or settings.runs):
        for recipe in recipes:
            if recipe.name in found.skipped:
                continue
            if settings.peers_only and recipe.name.startswith(PARKADE):
                found.skipped[recipe.name] = "only peers were asked for"
                continue
            _measure_once(found, recipe, measure, run)
    return found


def _measure_once(found: Comparison, recipe: Recipe, measure: Measure, run: int) -> None:
    try:
        with started(recipe) as server:
            sample = measure(server)
    except (Unavailable, OSError) as reason:
        found.skipped[recipe.name] = str(reason)
        print(f"    {recipe.name}: skipped, {reason}", file=sys.stderr)
        return
    found.samples.setdefault(recipe.name, []).append(sample)
    numbers = "  ".join(f"{key} {value:,.6g}" for key, value in sample.items())
    print(f"    {recipe.name} #{run + 1}: {numbers}", file=sys.stderr)
