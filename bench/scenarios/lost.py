"""A hundred responses, and then a signal: how many of their lines are never written?"""

import os
import signal
import subprocess

import catalogue_jobs as catalogue
from alternate import Contender, Sample, in_turn
from behind import Maker, folder, lines, post, until, until_quiet
from catalogue_jobs import log_file
from report import Outcome, Row, met, number
from servers import STOP_SECONDS, Server, Unavailable, started
from settings import Settings

COUNT = 100
LOST_MAX = 0
AFTERWARDS_SECONDS = 20
SIGNALS = [signal.SIGTERM, signal.SIGKILL]
MAKERS: list[Maker] = [catalogue.parkade_log, catalogue.threads, catalogue.uvicorn, catalogue.granian]


def run(settings: Settings) -> Outcome:
    outcome = Outcome(
        notes=[
            "Lost: each line is written one second after its answer, so that something is left when the signal comes. "
            "SIGTERM goes to the master alone, SIGKILL to the core alone for Parkade and to all processes of a peer. "
            "Afterwards each is started again."
        ]
    )
    contenders: dict[str, Contender] = {}
    for maker in MAKERS:
        with folder() as place:
            name = maker(place).name
        contenders[name] = lambda maker=maker: _sample(maker)  # type: ignore[misc]
    found = in_turn(settings, contenders)
    ours, *peers = contenders
    for which in SIGNALS:
        key = f"lost_{which.name}"
        outcome.rows.append(
            Row(
                work=f"lost of {COUNT} lines after {which.name} right after the last answer",
                target=str(LOST_MAX),
                parkade=number(found.worst(ours, key)),
                peer=", ".join(f"{peer} {number(found.worst(peer, key))}" for peer in peers),
                met=met(found.worst(ours, key), at_most=LOST_MAX),
            )
        )
    outcome.comparisons["lost"] = found
    return outcome


def _sample(maker: Maker) -> Sample:
    return {f"lost_{which.name}": float(_lost(maker, which)) for which in SIGNALS}


def _lost(maker: Maker, which: signal.Signals) -> int:
    with folder() as place:
        recipe = maker(place)
        with started(recipe) as server:
            for line in range(COUNT):
                if (told := post(server, "/later", f"line {line}")) != b"Doobie Doo":
                    raise Unavailable(f"answers {told!r}")
            _signalled(server, which)
        # If it kept its work, it can do it now.
        with started(recipe):
            file = log_file(place)
            # A job that has failed is retried within a second or two.
            until_quiet(file, 5, AFTERWARDS_SECONDS)
            return COUNT - lines(file)


def _signalled(server: Server, which: signal.Signals) -> None:
    whole = which is signal.SIGKILL and not catalogue.is_parkade(server.recipe)
    family = server.tree
    for pid in family if whole else server.core:
        os.kill(pid, which)
    try:
        server.process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"does not end within {STOP_SECONDS} s of {which.name}") from None
    until("its workers are gone", lambda: not any(_is_alive(pid) for pid in family), STOP_SECONDS)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
