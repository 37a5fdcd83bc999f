"""A worker: `python -m parkade TARGET`, started by the core with the link as its input and output. Started by a person,
it is the command `parkade`.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from ._app import App
from ._compiled import state as accelerator_state
from ._handling.adoption import adopt, mount
from ._handling.handling import Handling
from ._link import blocking, concurrent, process, records
from ._link.answers import Application
from ._link.greeting import Stopped, greet, still_wanted
from ._link.link import Link
from ._loading import Asgi3, Loaded, Wanted, load
from ._log import log
from ._own_files import tell_own_files
from ._session.session import Session
from ._waits import unused
from ._watched import watched
from .errors import LoadError


def main(arguments: list[str]) -> int:
    """Serves until the core says stop. 0 at an orderly end, 1 when the application cannot be started or the core broke
    the protocol, 2 when a person started it and there is no command `parkade`.
    """
    if len(arguments) != 1:
        return _run_command(arguments)
    try:
        link = process.take_link()
    except OSError:
        return _run_command(arguments)
    process.die_with_the_core(link)
    process.leave_signals_to_the_core()
    process.write_lines_at_once()
    records.begin()
    tell_own_files()
    session = Session()
    try:
        info = greet(link, session)
        try:
            if info.get("dev"):
                unused.watch()
                os.environ.setdefault("LITESTAR_DEBUG", "1")  # unless the application says debug=False
            wanted = Wanted(interface=info.get("interface", "auto"), factory="factory" in info)
            threads = int(info.get("threads", 1))
            application = _hosted(load(arguments[0], wanted), info, threads)
            if info.get("dev"):
                session.watch = watched()
            session.opens_early = application.opens_early
            still_wanted(link, session)
            # What was loaded lives as long as the worker: the collector need not look at it again.
            logging.getLogger("parkade").debug("the compiled accelerator is %s", accelerator_state)
            gc.collect()
            gc.freeze()
            run = partial(concurrent.run, threads=threads) if application.concurrent else blocking.run
            why = run(link, session, application)
        except LoadError as error:
            if info.get("dev"):
                session.watch = watched(error)
            return _failed(link, session, str(error))
    except Stopped as stopped:
        why = str(stopped)
    except ConnectionError:
        return 0  # the core has gone
    if why:
        log(f"parkade worker: {why}")
        return 1
    return 0


def _hosted(loaded: Loaded, info: Mapping[str, Any], threads: int) -> Application:
    """What a link runs, with the core's information. What no application needs is not imported."""
    dev, root_path = bool(info.get("dev")), str(info.get("root_path", ""))
    if isinstance(loaded, App):
        adopt(loaded)
        mount(loaded, root_path)
        return Handling(loaded, dev)
    if dev:
        from ._hosting.plain_failures import ShowingAsgi, ShowingWsgi

        loaded = Asgi3(ShowingAsgi(loaded.application)) if isinstance(loaded, Asgi3) else ShowingWsgi(loaded)
    if isinstance(loaded, Asgi3):
        from ._hosting.asgi import Asgi

        return Asgi(loaded.application, dev, root_path, str(info.get("on_disconnect", "notify")))
    from ._hosting.wsgi import Wsgi

    return Wsgi(loaded, dev, root_path, threads)


def _run_command(arguments: list[str]) -> int:
    """`python -m parkade serve app.py`, from a person: becomes the command `parkade`, where it can be found. `import`
    is done here: a settings file of Gunicorn is Python.
    """
    if arguments[:1] == ["import"]:
        from ._importing.command import main as translate

        return translate(arguments[1:])
    import shutil  # no worker needs them
    import sysconfig

    found = shutil.which("parkade", path=sysconfig.get_path("scripts")) or shutil.which("parkade")
    if found is not None:
        os.execv(found, [found, *arguments])
    log("the command `parkade` is not on the PATH: install the package, then `parkade serve app.py`")
    return 2


def _failed(link: Link, session: Session, text: str) -> int:
    link.send(session.failed(text) + session.goodbye("stopping", ""))
    return 1


if __name__ == "__main__":
    # Threads that the application started must not keep a worker alive that the core has dismissed.
    process.leave(main(sys.argv[1:]))
