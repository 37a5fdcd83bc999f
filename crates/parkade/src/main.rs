//! `parkade`: the application server that does the waiting itself.

mod admin;
mod check;
mod cli;
mod clock;
mod complaints;
mod config;
mod databases;
mod dev;
mod error;
mod http;
mod job_id;
mod job_values;
mod log;
mod poll;
mod queries;
mod routing;
mod seconds;
mod serve;
mod server;
mod share;
mod status_view;
mod store;
mod terminal;
mod tls_refusal;
mod words;
mod workers;

use std::process::ExitCode;

use cli::Command;

fn main() -> ExitCode {
    let outcome = match cli::parse() {
        Command::Serve { application, check: false } | Command::Dev(application) => serve::serve(&application),
        Command::Serve { application, check: true } => check::check(&application, check::Show::Outcome),
        Command::Routes(application) => check::check(&application, check::Show::Routes),
        Command::Status(arguments) => status_view::status(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Command::Publish(arguments) => status_view::publish(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Command::Cancel(arguments) => status_view::cancel(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Command::Jobs(arguments) => status_view::jobs(&arguments).map_err(Into::into),
        Command::Enqueue(arguments) => status_view::enqueue(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Command::Settings => terminal::print(&cli::settings_table()).map(|()| ExitCode::SUCCESS).map_err(Into::into),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("parkade: {error}");
            ExitCode::FAILURE
        }
    }
}
