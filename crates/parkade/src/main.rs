//! `parkade`: the application server that does the waiting itself.

mod admin;
mod application;
mod body_rest;
mod check;
mod cli;
mod clients;
mod clock;
mod complaints;
mod config;
mod databases;
mod descriptors;
mod dev;
mod error;
mod files;
mod http;
mod import;
mod job_id;
mod job_values;
mod jobs;
mod language;
mod loading;
mod log;
mod loop_timer;
mod platform;
mod poll;
mod queries;
mod recycled;
mod routing;
mod scripts;
mod seconds;
mod serve;
mod server;
mod service_manager;
mod share;
mod signals;
mod statistics;
mod status_view;
mod store;
mod terminal;
mod tls_refusal;
mod traces;
mod unix_socket;
mod upstream;
mod words;

use std::process::ExitCode;

use cli::CliCommand;

fn main() -> ExitCode {
    let outcome = match cli::parse() {
        CliCommand::Serve { application, check: false } | CliCommand::Dev(application) => serve::serve(&application),
        CliCommand::Serve { application, check: true } => check::check(&application, check::Show::Outcome),
        CliCommand::Routes { application, json } => check::check(&application, check::Show::Routes { json }),
        CliCommand::Status(arguments) => {
            status_view::status(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        CliCommand::Reload(arguments) => status_view::reload(&arguments).map_err(Into::into),
        CliCommand::Stop(arguments) => status_view::stop(&arguments).map_err(Into::into),
        CliCommand::Publish(arguments) => {
            status_view::publish(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        CliCommand::Cancel(arguments) => {
            status_view::cancel(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        CliCommand::Jobs(arguments) => status_view::jobs(&arguments).map_err(Into::into),
        CliCommand::Enqueue(arguments) => {
            status_view::enqueue(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        CliCommand::Import(arguments) => import::import(&arguments),
        CliCommand::Completions { shell } => {
            terminal::print(&cli::completions(shell)).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        CliCommand::Settings => terminal::print(&cli::settings_table()).map(|()| ExitCode::SUCCESS).map_err(Into::into),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("parkade: {error}");
            error.exit_code()
        }
    }
}
