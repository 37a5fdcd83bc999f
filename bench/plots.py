"""Bar charts as SVG. A bar is the median of all runs; the line across its end reaches from the lowest run to the
highest.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 720
NAMES = 230
VALUES = 150
BAR = 20
GAP = 10
GROUP = 30
OURS, THEIRS, INK, FAINT = "#2563eb", "#94a3b8", "#1e293b", "#64748b"


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    samples: Sequence[float]
    is_ours: bool


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class Plot:
    title: str
    note: str
    unit: str
    groups: Sequence[Group]
    is_logarithmic: bool = False

    def svg(self) -> str:
        room = WIDTH - NAMES - VALUES
        every = [value for group in self.groups for bar in group.bars for value in bar.samples]
        most, least = max(every), min(every)

        def along(value: float) -> float:
            if not self.is_logarithmic:
                return room * value / most
            start = math.log10(least) - 0.5
            return room * (math.log10(value) - start) / (math.log10(most) - start)

        parts, y = [], 66.0
        for group in self.groups:
            parts.append(text(16, y + 6, group.title, FAINT, 13))
            y += GROUP / 2 + 4
            for bar in group.bars:
                parts += self._bar(bar, y, along)
                y += BAR + GAP
            y += GROUP / 2
        height = round(y)
        head = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'font-family="system-ui, sans-serif" role="img" aria-label="{escape(self.title)}">',
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            text(16, 26, self.title, INK, 16, weight="600"),
            text(16, 45, self.note, FAINT, 12),
        ]
        return "\n".join([*head, *parts, "</svg>"]) + "\n"

    def _bar(self, bar: Bar, y: float, along: Callable[[float], float]) -> list[str]:
        middle = statistics.median(bar.samples)
        end, low, high = (NAMES + along(value) for value in (middle, min(bar.samples), max(bar.samples)))
        centre = y + BAR / 2
        label = f"{middle:,.0f}{self.unit}"
        top, across = f"{centre - 4:.1f}", f"{centre:.1f}"
        parts = [
            text(NAMES - 10, centre + 4, bar.name, INK, 13, anchor="end"),
            f'<rect x="{NAMES}" y="{y:.1f}" width="{end - NAMES:.1f}" height="{BAR}" '
            f'fill="{OURS if bar.is_ours else THEIRS}"/>',
        ]
        if high - low > 1:
            parts.append(
                f'<path d="M{low:.1f} {across}H{high:.1f}M{low:.1f} {top}v8M{high:.1f} {top}v8" '
                f'stroke="{INK}" fill="none"/>'
            )
        return [*parts, text(max(end, high) + 8, centre + 4, label, INK, 13)]


def text(x: float, y: float, words: str, colour: str, size: int, anchor: str = "start", weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(words)}</text>'
    )
