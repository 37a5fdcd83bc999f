//! Which setting wins, and how a refused one is reported.

use super::*;
use crate::config::{AccessFormat, Bind};

/// Settings of `parkade <line>` with these variables and this settings file.
fn parse_with(line: &str, variables: &[(&str, &str)], file: &str) -> Result<CliCommand, String> {
    let folder =
        std::env::temp_dir().join(format!("parkade-cli-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("settings.toml");
    std::fs::write(&path, file).unwrap();
    let config = format!("--config={}", path.display());
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let arguments = std::iter::once("parkade").chain(line.split_whitespace()).map(str::to_owned);
    let parsed = parse_from(arguments.chain([config]), variables);
    std::fs::remove_dir_all(&folder).unwrap();
    parsed.map_err(|error| error.to_string().replace(&path.display().to_string(), "settings.toml"))
}

fn settings(line: &str, variables: &[(&str, &str)], file: &str) -> ServerSettings {
    match parse_with(line, variables, file) {
        Ok(CliCommand::Serve { application, .. } | CliCommand::Dev(application)) => application.settings,
        other => panic!("{other:?} has no settings"),
    }
}

fn refusal(line: &str, variables: &[(&str, &str)], file: &str) -> String {
    parse_with(line, variables, file).unwrap_err()
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
    let deadline = |line, variables: &[_], file| settings(line, variables, file).workers.deadline;
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let variable = ("PARKADE_DEADLINE", "7s");
    assert_eq!(deadline("serve app", &[], ""), seconds(30));
    assert_eq!(deadline("serve app", &[], "deadline = 8"), seconds(8));
    assert_eq!(deadline("serve app", &[variable], "deadline = 8"), seconds(7));
    assert_eq!(deadline("serve app --deadline 6", &[variable], "deadline = 8"), seconds(6));
    assert_eq!(deadline("serve app --deadline 0", &[variable], "deadline = 8"), None);
}

#[test]
fn the_defaults_are_those_of_the_core() {
    let settings = settings("serve app", &[], "");
    let (workers, limits, core) = (settings.workers, settings.limits, parkade_core::Config::default());
    assert_eq!((workers.deadline, workers.kill_grace), (core.deadline, core.kill_grace));
    assert_eq!((workers.start_timeout, workers.grace), (core.start_timeout, core.reload_grace));
    assert_eq!(limits.parked_limit, core.parked_count_max);
    assert_eq!((limits.history_count, limits.history_bytes), (core.history.count, core.history.bytes));
    assert_eq!((limits.history_age, workers.recycle_jitter), (core.history.age, core.recycle.jitter_percent));
}

#[test]
fn there_is_one_thread_beside_a_loop_unless_more_are_wanted() {
    let threads = |line| settings(line, &[], "").workers.threads;
    assert_eq!((threads("serve app"), threads("serve app --threads 8")), (1, 8));
    for refused in ["0", "1025", "auto"] {
        assert!(
            refusal(&format!("serve app --threads {refused}"), &[], "").contains("write a whole number, 1 to 1024")
        );
    }
}

#[test]
fn lists_come_from_everywhere_and_replace_each_other_whole() {
    let bind = |line, variables: &[_], file| {
        let bind = settings(line, variables, file).listen.bind;
        bind.iter().map(Bind::to_string).collect::<Vec<_>>().join(" ")
    };
    let file = "bind = [\":1\", \"unix:/p\"]";
    assert_eq!(bind("serve app", &[], ""), "http://127.0.0.1:8000");
    assert_eq!(bind("serve app", &[], file), "http://0.0.0.0:1 unix:/p");
    assert_eq!(bind("serve app", &[("PARKADE_BIND", ":2, :3")], file), "http://0.0.0.0:2 http://0.0.0.0:3");
    assert_eq!(bind("serve app --bind :4 --bind :5", &[], file), "http://0.0.0.0:4 http://0.0.0.0:5");
}

#[test]
fn the_target_may_stand_in_the_file() {
    let target = |line, file| match parse_with(line, &[], file) {
        Ok(CliCommand::Serve { application, .. }) => application.target,
        other => panic!("{other:?}"),
    };
    assert_eq!(target("serve", "target = \"shop:app\""), "shop:app");
    assert_eq!(target("serve other:app", "target = \"shop:app\""), "other:app");
    assert!(refusal("serve", &[], "").contains("there is no app.py, manage.py or app.psgi in this folder"));
}

#[test]
fn a_variable_may_name_the_file() {
    let error = parse_from(["parkade", "serve", "app"], [("PARKADE_CONFIG".to_owned(), "/nowhere/p.toml".to_owned())]);
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "error: cannot read the settings file /nowhere/p.toml: No such file or directory (os error 2)\n");
}

#[test]
fn development_shows_each_request_unless_told_otherwise() {
    let access_log = |line, variables: &[_]| settings(line, variables, "").log.access_log;
    assert!(settings("dev app", &[], "").dev);
    assert_eq!(access_log("dev app", &[]), AccessFormat::Text);
    assert_eq!(access_log("dev app", &[("PARKADE_ACCESS_LOG", "json")]), AccessFormat::Json);
    assert_eq!(access_log("serve app", &[]), AccessFormat::Off);
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    assert_eq!(
        refusal("serve app", &[], "deadlin = 3"),
        "error: settings.toml: unknown key `deadlin`; did you mean `deadline`?\n"
    );
    assert_eq!(
        refusal("serve app", &[], "max_requests = 3"),
        "error: settings.toml: unknown key `max_requests`; did you mean `max-requests`?\n"
    );
    assert!(
        refusal("serve app", &[], "zzz = 3").contains("the known ones are target, directory, interface, factory, ")
    );
    assert_eq!(
        refusal("serve app", &[("PARKADE_DEADLIN", "3")], ""),
        "error: unknown environment variable PARKADE_DEADLIN; did you mean `PARKADE_DEADLINE`?\n"
    );
    assert!(refusal("serve app --deadlin 3", &[], "").contains("'--deadline'"));
}

#[test]
fn variables_of_others_are_left_alone() {
    let others = [("PARKADE_PORT", "tcp://10.0.0.1:80"), ("PARKADE_PORT_80_TCP", "x"), ("PARKADE_SERVICE_HOST", "x")];
    settings("serve app", &others, "");
    settings("serve app", &[("PARKADE_DEADLIN", ""), ("HOME", "/")], "");
}

#[test]
fn a_refused_value_says_where_it_comes_from_and_what_to_write() {
    let advice = "invalid value 'soon' for '--deadline <TIME>': write a duration as 30, 30s, 500ms, 2m, 1h or 7d";
    assert!(refusal("serve app --deadline soon", &[], "").contains(advice));
    assert_eq!(
        refusal("serve app", &[("PARKADE_DEADLINE", "soon")], ""),
        format!("error: {advice}\n\nThe value comes from the environment variable PARKADE_DEADLINE.\n")
    );
    assert_eq!(
        refusal("serve app", &[], "deadline = \"soon\""),
        format!("error: {advice}\n\nThe value comes from settings.toml.\n")
    );
    let factory = refusal("serve app", &[], "factory = \"yes\"");
    assert!(factory.ends_with("The value comes from settings.toml.\n"), "{factory}");
    let format = refusal("serve app", &[], "log-format = \"xml\"");
    assert!(
        format.contains("[possible values: text, json]") && format.contains("comes from settings.toml"),
        "{format}"
    );
}

#[test]
fn a_value_of_the_wrong_type_says_what_it_takes() {
    assert_eq!(
        refusal("serve app", &[], "deadline = true"),
        "error: settings.toml: `deadline` takes a string or a number\n"
    );
    assert_eq!(
        refusal("serve app", &[], "deadline = [1]"),
        "error: settings.toml: `deadline` takes a string or a number\n"
    );
    assert_eq!(
        refusal("serve app", &[], "[bind]\nx = 1"),
        "error: settings.toml: `bind` takes a string, a number or a list of them\n"
    );
    assert!(refusal("serve app", &[], "deadline = ").starts_with("error: settings.toml is not valid TOML: "));
}

#[test]
fn the_table_names_every_setting_once() {
    let table = settings_table();
    assert!(table.contains("| `max-memory` | `PARKADE_MAX_MEMORY` | `0` |"), "{table}");
    assert!(
        table.contains(
            "| `access-log` | `PARKADE_ACCESS_LOG` | `off` | Log each request, in this format: `off`, `text`, `json`, \
             `combined` |"
        ),
        "{table}"
    );
    assert!(table.contains("| `workers` | `PARKADE_WORKERS` | `auto` |"), "{table}");
    assert_eq!(table.matches("PARKADE_BIND").count(), 1);
    assert!(!table.contains("| `check`") && !table.contains("| `target`"));
}

/// A limit is a maximum or a time allowed, and 0 means that there is none. "Must have ended after" means the opposite.
#[test]
fn help_says_what_a_limit_does_and_what_0_means() {
    let help = serve_command().render_long_help().to_string();
    for line in [
        "Maximum time for a request to be queued and run; beyond it, 503 if it is still queued, 504 if it is running. 0 \
         means no limit",
        "Time allowed for a worker to load the application",
        "Time allowed to receive a request head, then 408",
        "Maximum number of parked requests; beyond it, 503",
        "Replace a worker at this age; 0 means never",
    ] {
        assert!(help.replace(['\n', ' '], "").contains(&line.replace(' ', "")), "{line:?} is not in\n{help}");
    }
}

/// The help of a command, with this flag.
fn help(line: &str) -> String {
    parse_from(line.split_whitespace(), []).unwrap_err().to_string()
}

#[test]
fn the_short_help_is_for_those_who_begin() {
    for command in ["serve", "dev"] {
        let (short, long) = (help(&format!("parkade {command} -h")), help(&format!("parkade {command} --help")));
        assert!(short.lines().count() < 60 && short.lines().count() * 2 < long.lines().count(), "{short}");
        for flag in ["-b, --bind", "-w, --workers", "--database", "--admin"] {
            assert!(short.contains(flag) && long.contains(flag), "{flag} {short}");
        }
        assert!(long.contains("--recycle-jitter") && !short.contains("--recycle-jitter"));
        assert!(short.contains("Examples:") && short.contains(&format!("All settings: parkade {command} --help")));
    }
}

#[test]
fn the_help_of_routes_shows_what_loading_needs() {
    let help = help("parkade routes --help");
    assert!(help.contains("--python") && !help.contains("--bind") && help.lines().count() < 40, "{help}");
    assert!(parse_from("parkade routes x:app --bind 9000".split(' '), []).is_ok(), "one settings file serves both");
}

#[test]
fn usual_settings_exist() {
    let serve = serve_command();
    for id in USUAL.iter().chain(&OF_LOADING).filter(|id| **id != "json") {
        assert!(serve.get_arguments().any(|arg| arg.get_id() == id), "{id}");
    }
}

#[test]
fn there_is_a_script_for_each_shell() {
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
        let script = completions(shell);
        assert!(script.contains("enqueue") && script.contains("deadline"), "{shell}");
    }
}

#[test]
fn help_is_short_and_names_things_first() {
    let mut commands = vec![Cli::command()];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|command| command.get_name() != "help").cloned());
        let arguments = command.get_arguments().filter_map(|argument| argument.get_help()).map(ToString::to_string);
        let texts: Vec<String> = arguments.chain(command.get_about().map(ToString::to_string)).collect();
        for text in texts {
            assert!(text.starts_with(char::is_uppercase) && !text.ends_with('.'), "{text:?}");
            for word in ["must have", "is never", "more are", "more is", "given many times", "Who ", "beside", "behind"]
            {
                assert!(!text.contains(word), "{text:?} says {word:?}");
            }
        }
    }
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}
