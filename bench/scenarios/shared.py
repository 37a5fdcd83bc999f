"""Many requests at once for one slow key: how often does the database execute it?"""

import catalogue_postgres as catalogue
import load
import postgres
from alternate import Sample, alternate
from report import Outcome, Row, both, met, number
from servers import Server
from settings import Settings

REQUESTS = 500
EXECUTIONS_MAX = 1


def run(settings: Settings) -> Outcome:
    with postgres.running() as cluster:
        ours = catalogue.parkade(cluster)

        def measure(server: Server) -> Sample:
            # Each execution takes a number from the sequence.
            cluster.ask("drop sequence if exists executions; create sequence executions")
            found = load.fire(server, "/shared", REQUESTS)
            executions = cluster.ask("select last_value from executions where is_called")
            return {"executions": float(executions[0][0]) if executions else 0, "failed": found["failed"]}

        found = alternate(settings, [ours], measure)
    executions, failed = found.worst(ours.name, "executions"), found.worst(ours.name, "failed")
    row = Row(
        work=f"{REQUESTS} requests for the same slow key with `shared`",
        target=f"{EXECUTIONS_MAX} execution",
        parkade=f"{number(executions)}, {number(failed)} failed",
        peer="–",
        met=both(met(executions, at_least=1, at_most=EXECUTIONS_MAX), met(failed, at_most=0)),
    )
    return Outcome([row], {"shared": found})
