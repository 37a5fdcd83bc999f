//! Flags and commands of other servers, which people type by habit: says what to write here instead.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

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
    Text(&'static str),
}

const TLS: &str = "Parkade has no TLS of its own yet: put a proxy in front (docs/operations.md, Behind nginx)";
const KIND: &str = "Parkade detects what an application is: one written for Parkade (`from parkade import App`), with \
                    plain functions and coroutines side by side, or one of WSGI, ASGI or PSGI. --interface overrides \
                    that, and --threads is how many requests of WSGI a worker runs at once";
const FOREGROUND: &str =
    "Parkade stays in the foreground: let systemd or a container run it (docs/operations.md, systemd)";

/// Flags of uvicorn, gunicorn, granian, hypercorn and Flask.
const HABITS: [(&[&str], Advice); 18] = [
    (&["--port", "-p", "--host", "-H"], Advice::Address),
    (&["--uds", "--unix-socket", "--socket"], Advice::Socket),
    (&["--reload", "--debug", "--auto-reload"], Advice::Dev),
    (&["--timeout", "-t", "--workers-kill-timeout"], Advice::Flag("--deadline")),
    (&["--graceful-timeout", "--timeout-graceful-shutdown"], Advice::Flag("--grace")),
    (&["--chdir", "--app-dir", "--working-dir"], Advice::Flag("--directory")),
    (&["--max-requests-jitter", "--limit-max-requests-jitter"], Advice::Flag("--recycle-jitter")),
    (&["--limit-max-requests"], Advice::Flag("--max-requests")),
    (&["--timeout-keep-alive", "--keepalive"], Advice::Flag("--keep-alive")),
    (&["--limit-concurrency", "--backpressure"], Advice::Flag("--connections-limit")),
    (&["--forwarded-allow-ips", "--proxy-headers"], Advice::Flag("--trust")),
    (&["--access-logfile", "--access-log-path"], Advice::Text("write --access-log text --access-log-file FILE")),
    (
        &["--error-logfile", "--log-file"],
        Advice::Text("the log goes to standard error: redirect it to a file, or let journald take it"),
    ),
    (
        &["--ssl-keyfile", "--ssl-certfile", "--keyfile", "--certfile", "--ssl-key", "--ssl-certificate"],
        Advice::Text(TLS),
    ),
    (&["--worker-class", "-k", "--asgi", "--wsgi"], Advice::Text(KIND)),
    (&["--blocking-threads"], Advice::Flag("--threads")),
    (&["--url-path-prefix"], Advice::Flag("--root-path")),
    (&["--daemon", "-D", "--pid-file", "--pidfile"], Advice::Text(FOREGROUND)),
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
        Advice::Text(text) => (*text).into(),
    };
    clap::Error::raw(
        ErrorKind::UnknownArgument,
        format!("there is no {unknown}: {text}\n\nAll settings: parkade serve --help\n"),
    )
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
    }

    #[test]
    fn others_are_refused_as_ever() {
        assert!(refusal("parkade serve app --deadlin 3").contains("'--deadline'"));
        assert!(!refusal("parkade status --port 3").contains("--bind"));
    }
}
