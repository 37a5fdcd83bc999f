//! Flags and commands of other servers, which people type by habit: says what to write here instead.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::language::Language;

/// The advice for a flag that does not exist here.
enum Advice {
    /// `--port 9113`, `--host 0.0.0.0`: each is a part of one address.
    Address,
    /// The value goes to this flag of ours.
    Flag(&'static str),
    /// The value is the path of a socket.
    Socket,
    /// `parkade dev` does it.
    Dev,
    /// Nobody needs it here.
    Unneeded,
    Text(&'static str),
}

const TLS: &str = "Parkade has no TLS of its own yet: put a proxy in front (docs/operations.md, Behind nginx)";
const KIND: &str = "Parkade detects what an application is: one written for Parkade (`from parkade import App`), with \
                    plain functions and coroutines side by side, or one of WSGI, ASGI or PSGI. --interface overrides \
                    that, and --threads is how many requests of WSGI a worker runs at once";
const FOREGROUND: &str =
    "Parkade stays in the foreground: let systemd or a container run it (docs/operations.md, systemd)";

const SERVICE: &str = "a service manager does it: docs/operations.md has a unit for systemd";
const ENVIRONMENT: &str = "set variables in the environment: NAME=value parkade serve …, or systemd's Environment=";
const TARGET: &str = "the application is the first argument: parkade serve module:name, or a file";
const IMPORT: &str =
    "`parkade import FILE > parkade.toml` translates a gunicorn.conf.py, an .ini of uWSGI or a .json of Unit";
const MIDDLEWARE: &str = "a middleware of the application adds fields to its responses";
const PROXY: &str = "the proxy in front does it, or App.files in an application of Parkade's own interface";

/// Flags of uvicorn, gunicorn, granian, hypercorn, uWSGI, Flask and plackup.
const HABITS: [(&[&str], Advice); 52] = [
    (&["--port", "-p", "--host", "-H"], Advice::Address),
    (&["--uds", "--unix-socket", "--socket"], Advice::Socket),
    (&["--insecure-bind", "--http-socket", "-l"], Advice::Flag("--bind")),
    (&["--fd"], Advice::Text("Parkade takes sockets as systemd passes them (docs/operations.md, systemd)")),
    (&["--reload", "--debug", "--auto-reload", "-r"], Advice::Dev),
    (
        &["--reload-dir", "--reload-include", "--reload-extra-file", "--reload-paths", "-R"],
        Advice::Text("`parkade dev` watches the application's folders; --watch adds others"),
    ),
    (
        &["--reload-exclude", "--reload-ignore-dirs", "--reload-ignore-patterns", "--reload-ignore-paths"],
        Advice::Text("`parkade dev` watches the application's folders; --ignore leaves out others"),
    ),
    (&["--timeout", "-t", "--workers-kill-timeout", "--harakiri"], Advice::Flag("--deadline")),
    (&["--graceful-timeout", "--timeout-graceful-shutdown"], Advice::Flag("--grace")),
    (&["--chdir", "--app-dir", "--working-dir", "--pythonpath"], Advice::Flag("--directory")),
    (&["-I"], Advice::Text("set PERL5LIB in the environment, or start `plackup -s Parkade`, which has this flag")),
    (&["-E"], Advice::Text("set PLACK_ENV in the environment; `parkade dev` is for development")),
    (
        &["-s", "-a", "-M", "-L"],
        Advice::Text("`plackup -s Parkade` has the flags of plackup; parkade serve app.psgi needs none of them"),
    ),
    (
        &["--max-requests-jitter", "--limit-max-requests-jitter"],
        Advice::Text("write --recycle-jitter with a share of --max-requests, such as 10%"),
    ),
    (&["--limit-max-requests"], Advice::Flag("--max-requests")),
    (&["--workers-lifetime", "--max-worker-lifetime"], Advice::Flag("--max-age")),
    (&["--workers-max-rss", "--reload-on-rss"], Advice::Text("write --max-memory with a unit, such as 512MiB")),
    (&["--processes"], Advice::Flag("--workers")),
    (&["--timeout-keep-alive", "--keepalive", "--http1-keep-alive-timeout"], Advice::Flag("--keep-alive")),
    (&["--limit-concurrency", "--backpressure"], Advice::Flag("--connections-limit")),
    (
        &["--forwarded-allow-ips", "--proxy-headers", "--proxy-allow-from", "--reverse-proxy"],
        Advice::Text("write --trust with the address of the proxy, such as 127.0.0.1, unix or 10.0.0.0/8"),
    ),
    (&["--no-proxy-headers"], Advice::Text("leave it out: nobody is trusted without --trust")),
    (
        &["--proxy-protocol", "--enable-proxy-protocol"],
        Advice::Text("have the proxy set X-Forwarded-For, and write --trust with its address"),
    ),
    (&["--access-logfile", "--access-log-path"], Advice::Text("write --access-log text --access-log-file FILE")),
    (
        &["--access-logformat", "--access-log-fmt", "--access-log-format"],
        Advice::Text("write --access-log with text, json or combined"),
    ),
    (&["--no-access-log"], Advice::Text("leave it out: there is none without --access-log")),
    (
        &["--error-logfile", "--log-file", "--error-log", "--logto"],
        Advice::Text("the log goes to standard error: redirect it to a file, or let journald take it"),
    ),
    (
        &["--log-config", "--logger-class", "--log-config-json", "--log-syslog"],
        Advice::Text("the application's own configuration of logging works as it is (docs/logging.md)"),
    ),
    (
        &["--statsd-host", "--statsd-prefix", "--metrics", "--stats"],
        Advice::Text("write --admin 127.0.0.1:9000, which serves /metrics for Prometheus"),
    ),
    (
        &["--ssl-keyfile", "--ssl-certfile", "--keyfile", "--certfile", "--ssl-key", "--ssl-certificate", "--ssl-cert"],
        Advice::Text(TLS),
    ),
    (&["--ca-certs", "--ssl-ca-certs", "--https", "--quic-bind", "--cert"], Advice::Text(TLS)),
    (&["--worker-class", "-k", "--asgi", "--wsgi"], Advice::Text(KIND)),
    (&["--blocking-threads"], Advice::Flag("--threads")),
    (&["--url-path-prefix"], Advice::Flag("--root-path")),
    (&["--daemon", "-D", "--daemonize"], Advice::Text(FOREGROUND)),
    (&["--pid-file", "--pidfile", "--pid"], Advice::Text(FOREGROUND)),
    (&["--user", "-u", "--group", "-g", "--umask", "-m", "--uid", "--gid"], Advice::Text(SERVICE)),
    (&["--env", "-e", "--env-file", "--env-files"], Advice::Text(ENVIRONMENT)),
    (&["--module", "--wsgi-file", "--psgi", "--app"], Advice::Text(TARGET)),
    (&["-c", "--ini", "--yaml"], Advice::Text(IMPORT)),
    (&["--chmod-socket", "--uds-permissions"], Advice::Flag("--socket-mode")),
    (&["--check-config"], Advice::Text("write --check")),
    (&["--print-config"], Advice::Text("the page at --admin lists all settings, with where each comes from")),
    (&["--header", "--server-name"], Advice::Text(MIDDLEWARE)),
    (&["--static-path-mount", "--static-path-route", "--static-map", "--check-static"], Advice::Text(PROXY)),
    (
        &["--limit-request-line", "--limit-request-field_size", "--h11-max-incomplete-event-size", "--buffer-size"],
        Advice::Text("write --header-limit, which is for the whole head of a request, such as 64KiB"),
    ),
    (&["--limit-request-fields"], Advice::Flag("--header-count")),
    (&["--ws-max-size", "--websocket-max-message-size"], Advice::Flag("--websocket-limit")),
    (&["--ws-ping-interval", "--websocket-ping-interval"], Advice::Flag("--websocket-ping")),
    (&["--ws-ping-timeout"], Advice::Flag("--websocket-pong-timeout")),
    (&["--ws-per-message-deflate"], Advice::Text("write --websocket-compression with none, message or context")),
    (&UNNEEDED, Advice::Unneeded),
];

/// What other servers tune, and what happens here by itself.
const UNNEEDED: [&str; 43] = [
    "--backlog",
    "--capture-output",
    "--date-header",
    "--die-on-term",
    "--enable-stdio-inheritance",
    "--enable-threads",
    "--http",
    "--lazy-apps",
    "--lifespan",
    "--loop",
    "--master",
    "--name",
    "--need-app",
    "--no-date-header",
    "--no-sendfile",
    "--no-server-header",
    "--no-use-colors",
    "--no-ws",
    "--preload",
    "--preload-app",
    "--proc-name",
    "--process-name",
    "--reset-contextvars",
    "--respawn-failed-workers",
    "--respawn-interval",
    "--reuse-port",
    "--runtime-blocking-threads",
    "--runtime-mode",
    "--runtime-threads",
    "--server-header",
    "--single-interpreter",
    "--task-impl",
    "--thunder-lock",
    "--timeout-worker-healthcheck",
    "--use-colors",
    "--vacuum",
    "--worker-connections",
    "--worker-tmp-dir",
    "--ws",
    "--ws-max-queue",
    "-n",
    "--log-4xx",
    "--log-5xx",
];

/// Commands that start other servers.
const STARTING: [&str; 4] = ["run", "start", "up", "server"];

/// The refusal of such a flag or command, if it is one; `arguments` is the whole command line.
#[must_use]
pub fn explain(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    if let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand)
        && STARTING.contains(&command.as_str())
    {
        let text = format!(
            "there is no `parkade {command}`: `parkade serve app.py` serves the application, and `parkade dev app.py` \
             reloads it while you write it\n"
        );
        return clap::Error::raw(ErrorKind::InvalidSubcommand, text);
    }
    if let Some(ContextValue::String(target)) = error.get(ContextKind::InvalidSubcommand)
        && is_application(target)
    {
        let text = format!("write `parkade serve {target}`, or `parkade dev {target}` while you write it\n");
        return clap::Error::raw(ErrorKind::InvalidSubcommand, text);
    }
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if error.kind() == ErrorKind::UnknownArgument => flag.as_str(),
        _ => return error,
    };
    let words: Vec<&str> = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let is_serving =
        words.iter().find(|word| !word.starts_with('-')).is_some_and(|word| super::SETTINGS_COMMANDS.contains(word));
    let known = HABITS.iter().find(|(flags, _)| flags.contains(&unknown)).filter(|_| is_serving);
    let Some((_, advice)) = known else { return error };
    let value = |flags: &[&str], missing: &'static str| value(&words, flags).unwrap_or(missing).to_owned();
    let text = match advice {
        Advice::Address => {
            let host = value(&["--host", "-H"], "127.0.0.1");
            let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
            format!("write --bind {host}:{}", value(&["--port", "-p"], "8000"))
        }
        Advice::Socket => format!("write --bind unix:{}", value(&[unknown], "/run/web.sock")),
        Advice::Dev => "`parkade dev` reloads when a file changes, and shows errors as pages".into(),
        Advice::Flag(ours) => format!("write {ours} {}", value(&[unknown], "…")),
        Advice::Unneeded => "leave it out: Parkade has no need of it, or does it by itself (docs/migrate.md)".into(),
        Advice::Text(text) => (*text).into(),
    };
    clap::Error::raw(
        ErrorKind::UnknownArgument,
        format!("there is no {unknown}: {text}\n\nAll settings: parkade serve --help\n"),
    )
}

/// `parkade main:app`, `parkade app.psgi`.
fn is_application(word: &str) -> bool {
    word.contains(':') || Language::of_file(Path::new(word)).is_some()
}

/// The value of the first of these flags that is present: the next argument, or the text after `=`, or, for a short
/// flag, after its letter.
fn value<'a>(words: &[&'a str], flags: &[&str]) -> Option<&'a str> {
    for (nth, word) in words.iter().enumerate() {
        for flag in flags {
            let Some(rest) = word.strip_prefix(flag) else { continue };
            match rest.strip_prefix('=') {
                Some(value) => return Some(value),
                None if rest.is_empty() => return words.get(nth + 1).copied().filter(|next| !next.starts_with('-')),
                None if !flag.starts_with("--") => return Some(rest),
                None => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::parse_from;

    fn refusal(line: &str) -> String {
        let error = parse_from(line.split_whitespace(), []).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        error.to_string()
    }

    #[test]
    fn a_flag_of_another_server_says_what_to_write() {
        for (line, says) in [
            ("parkade serve app --port 9113", "there is no --port: write --bind 127.0.0.1:9113\n"),
            ("parkade serve app --port=9113", "write --bind 127.0.0.1:9113\n"),
            ("parkade serve app -p 9113", "there is no -p: write --bind 127.0.0.1:9113\n"),
            ("parkade serve app -p9113", "write --bind 127.0.0.1:9113\n"),
            ("parkade serve app --host 0.0.0.0", "there is no --host: write --bind 0.0.0.0:8000\n"),
            ("parkade serve app --host 0.0.0.0 --port 80", "write --bind 0.0.0.0:80\n"),
            ("parkade dev app --host ::1 --port 80", "write --bind [::1]:80\n"),
            ("parkade serve app --uds /run/x.sock", "write --bind unix:/run/x.sock\n"),
            ("parkade serve app --reload", "`parkade dev` reloads"),
            ("parkade serve app --timeout 60", "write --deadline 60\n"),
            ("parkade serve app --graceful-timeout 60", "write --grace 60\n"),
            ("parkade serve app --certfile x", "no TLS"),
            ("parkade serve app --worker-class x", "--interface overrides"),
            ("parkade serve app --blocking-threads 4", "write --threads 4\n"),
            ("parkade serve app --daemon", "foreground"),
            ("parkade serve app --ws-max-size 1000", "write --websocket-limit 1000\n"),
            ("parkade serve app --ws-ping-interval=20", "write --websocket-ping 20\n"),
            ("parkade serve app --max-requests-jitter 50", "a share of --max-requests"),
            ("parkade serve app --forwarded-allow-ips=*", "write --trust with the address of the proxy"),
            ("parkade serve app --loop uvloop", "leave it out"),
            ("parkade serve app -c gunicorn.conf.py", "`parkade import FILE"),
            ("parkade serve app.psgi -E production", "PLACK_ENV"),
            ("parkade serve app.psgi -Ilib", "PERL5LIB"),
            ("parkade serve app.psgi -l :8080", "write --bind :8080\n"),
            ("parkade serve --http-socket :8080", "write --bind :8080\n"),
            ("parkade dev app --reload-dir src", "--watch adds others"),
        ] {
            let told = refusal(line);
            assert!(told.contains(says), "{line}: {told}");
        }
    }

    #[test]
    fn a_command_of_another_server_says_what_to_write() {
        assert!(refusal("parkade run app.py").contains("there is no `parkade run`: `parkade serve app.py` serves"));
        assert!(refusal("parkade start").contains("`parkade dev app.py`"));
        assert!(refusal("parkade serv app.py").contains("'serve'"));
        assert!(refusal("parkade main:app --workers 2").contains("write `parkade serve main:app`"));
        assert!(refusal("parkade app.psgi").contains("write `parkade serve app.psgi`"));
    }

    #[test]
    fn others_are_refused_as_ever() {
        assert!(refusal("parkade serve app --deadlin 3").contains("'--deadline'"));
        assert!(!refusal("parkade status --port 3").contains("--bind"));
    }
}
