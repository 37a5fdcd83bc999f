"""Options of uWSGI that no setting here stands for, and what to do instead. The names are those of uWSGI 2.0.31
(`core/uwsgi.c` and the tables of its plugins); most of them come in families that share a prefix.
"""

from __future__ import annotations

from .draft import BY_SYSTEMD, IN_A_PROXY, IN_THE_ENVIRONMENT, NOT_NEEDED, STACK_SIZE

LOOPS = "a view that waits is parked instead: docs/hosted.md"
LOGS = "the log goes to standard error; set access-log for lines of requests"
JOBS = "jobs do it: docs/jobs.md"
NUMBER_IS_FIXED = "the number of workers is fixed"
METRICS = "admin has a page, JSON and /metrics for Prometheus"
AROUND = "ExecStartPre= and ExecStartPost= of systemd run programs around the server"
TEMPLATES = "uwsgi evaluates it: write down the result"
ONE_SERVER_EACH = "docs/migrate.md says how several applications are served"
RESPONSES = "a middleware of the application, or the proxy in front"
LIMITS = "deadline, body-timeout and stall-timeout are the limits here"
OTHER_LANGUAGES = "only Python and Perl are served"
MESSAGES = "channels carry messages, a database keeps data: docs/hosted.md"

REASONS = {
    NOT_NEEDED: "master vacuum need-app no-default-app single-interpreter enable-threads thunder-lock lazy lazy-apps "
    "strict plugin plugins plugin-dir plugins-dir need-plugin need-plugins autoload http-keepalive http-auto-chunked "
    "http-chunked-input http-raw-body http-websockets http-manage-expect http-modifier1 http-modifier2 modifier1 "
    "modifier2 auto-procname procname procname-prefix "
    "procname-prefix-spaced procname-append procname-master listen ignore-sigpipe ignore-write-errors "
    "write-errors-tolerance write-errors-exception-only disable-write-exception post-buffering post-buffering-bufsize "
    "no-orphans py-call-osafterfork py-call-uwsgi-fork-hooks close-on-exec close-on-exec2 harakiri-verbose "
    "harakiri-no-arh disable-logging py-tracebacker wsgi-disable-file-wrapper wsgi-env-behavior wsgi-env-behaviour "
    "wsgi-accept-buffer wsgi-accept-buffers wsgi-strict show-config so-keepalive tcp-nodelay reuse-port freebind "
    "no-defer-accept tcp-fastopen tcp-fast-open socket-sndbuf socket-rcvbuf master-fifo die-on-term optimize "
    "manage-script-name pcre-jit skip-atexit skip-atexit-teardown max-apps max-vars min-worker-lifetime lock-engine "
    "ftok reload-os-env exit-on-reload shutdown-sockets disable-sendfile py-executable py-sys-executable "
    "py-program-name py-programname no-site remap-modifier memory-report honour-stdin no-fd-passing "
    "mem-collector-freq ksm never-swap threaded-logger",
    BY_SYSTEMD: "uid gid add-gid immediate-uid immediate-gid daemonize daemonize2 pidfile pidfile2 safe-pidfile "
    "safe-pidfile2 attach-daemon attach-daemon2 smart-attach-daemon smart-attach-daemon2 umask cap chroot "
    "limit-as limit-nproc max-fd prio cpu-affinity reload-on-fd shared-socket undeferred-shared-socket map-socket "
    "master-as-root no-initgroups no-server stop reload pivot-root unshare unshare2 namespace ns jail jail2",
    STACK_SIZE: "threads-stacksize threads-stack-size thread-stacksize thread-stack-size",
    NUMBER_IS_FIXED: "cheaper cheap idle die-on-idle",
    LOOPS: "gevent async ugreen greenlet loop asyncio tornado fiber coroae stackless goroutines",
    LOGS: "logto logto2 logger logger-req req-logger logdate logfile-chown logfile-chmod logformat "
    "logformat-strftime touch-logreopen touch-logrotate",
    "`trust` names the proxies whose X-Forwarded-For counts": "log-x-forwarded-for",
    IN_A_PROXY: "https https-socket https2 check-static check-static-docroot http-to fastcgi-socket "
    "fastcgi-nph-socket scgi-socket scgi-nph-socket offload-threads offload-thread mimefile mime-file "
    "file-serve-mode fileserve-mode enable-proxy-protocol http-enable-proxy-protocol honour-range cgi",
    RESPONSES: "add-header rem-header del-header collect-header pull-header",
    JOBS: "mule mules farm spooler timer cron cron2 unique-cron",
    "import it in the module of the application": "import pyimport py-import python-import shared-import "
    "shared-py-import shared-pyimport shared-python-import",
    ONE_SERVER_EACH: "mount vhost vhost-host",
    "parkade reload, or SIGHUP": "touch-reload touch-chain-reload touch-workers-reload fs-reload fs-brutal-reload",
    "parkade dev reloads on change, and shows errors as pages": "py-autoreload python-autoreload py-auto-reload "
    "python-auto-reload py-auto-reload-ignore catch-exceptions",
    "write its settings here, too": "ini include inherit json yaml yml xml xmlconfig config fallback-config config-py",
    TEMPLATES: "for for-glob for-times for-readline ifenv ifexists ifdir ifplugin else end end-for endfor end-if endif",
    IN_THE_ENVIRONMENT: "env unenv envdir early-envdir",
    "recycle-jitter is a share, and counts for max-age, too": "max-worker-lifetime-delta",
    "max-memory counts resident memory": "reload-on-as evil-reload-on-as",
    "let the application itself change the folder after loading": "chdir2",
    "it is left to its own deadline, then killed": "harakiri-graceful-timeout harakiri-graceful-signal "
    "harakiri-queue-threshold",
    LIMITS: "http-timeout http-connect-timeout http-headers-timeout http-harakiri socket-timeout socket-send-timeout "
    "socket-write-timeout so-send-timeout so-write-timeout chunked-input-timeout",
    "header-limit and header-count are the limits of a request's head": "http-buffer-size",
    METRICS: "enable-metrics carbon snmp nagios rrdtool zabbix-template",
    MESSAGES: "cache cache2 queue sharedarea rpc-max locks",
    "write a module that has it as its `application`": "paste ini-paste ini-paste-logged pecan web3 wsgi-lite eval",
    "an exception is logged with its traceback, and answered with 500": "reload-on-exception "
    "reload-on-exception-type reload-on-exception-value reload-on-exception-repr exception-handler",
    "docs/perl.md shows how Perl is served": "perl-local-lib perl-version perl-no-die-catch perl-arg perl-args "
    "perl-exec perl-exec-post-fork perl-auto-reload perl-auto-reload-ignore perl-no-plack psgi-enable-psgix-io",
}
WHY = {name: why for why, names in REASONS.items() for name in names.split()}

FAMILIES = {
    NUMBER_IS_FIXED: "cheaper-",
    LOOPS: "gevent- ugreen-",
    LOGS: "log- rsyslog-",
    IN_A_PROXY: "static- route response-route error-route final-route error-page- http- https- ssl- sni fastrouter "
    "rawrouter sslrouter fastcgi- scgi- cgi- subscri forkpty",
    JOBS: "mule- spooler- cron- unique- curl-cron legion signal",
    BY_SYSTEMD: "emperor vassal imperial- zerg cgroup namespace- jail- setns wait-for- wait-i reaper",
    AROUND: "hook- exec- call- mount- umount- after-request- touch-exec touch-signal",
    TEMPLATES: "if-",
    METRICS: "metric stats- carbon- alarm snmp- rrdtool-",
    MESSAGES: "cache- queue- websocket",
    OTHER_LANGUAGES: "php rack rails rb ruby rvm gemset lua jvm jwsgi clojure mono go- gccgo pypy ring- js xslt",
}


def reason(name: str) -> str | None:
    """Why this option is not carried over; none if it is unknown."""
    found = WHY.get(name)
    if found is not None:
        return found
    families = ((why, prefix) for why, prefixes in FAMILIES.items() for prefix in prefixes.split())
    return next((why for why, prefix in families if name.startswith(prefix)), None)
