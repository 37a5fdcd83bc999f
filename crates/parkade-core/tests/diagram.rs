//! The diagram in `ARCHITECTURE.md` is what the machine does: every state is brought about, every happening tried on it, every move drawn.
//!
//! `PARKADE_BLESS=1 cargo test --test diagram` writes it.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::collections::BTreeMap;
use std::fmt::Write;

use parkade_core::State;
use script::{Script, config, of_jobs};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md");
const BEGIN: &str = "<!-- life:begin -->\n";
const END: &str = "<!-- life:end -->";

/// Ways to bring a request about in each state. The worker is left without credit where it would take the request at once.
const STATES: [(&str, State); 31] = [
    ("deaf arrive:a ready:1:sync:0", State::Accepted),
    ("ready:1:sync:0 deaf arrive:a", State::Routed),
    ("ready:1:sync:1 deaf arrive:a", State::Running),
    ("ready:1:sync:1 deaf arrive:a begin:a", State::Running),
    ("ready:1:concurrent:1 deaf arrive:a:/async", State::Running),
    ("ready:1:sync:9 arrive:x answer:x arrive:b deaf arrive:a", State::Running),
    ("ready:1:sync:1 deaf arrive:a park:a:timer:2s:answer credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:timer:2s:call credit:1:-1", State::Parked),
    ("ready:1:concurrent:1 deaf arrive:a park:a:timer:2s:await credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:next:bids:answer credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:next:bids:call credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:stream:bids:answer credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:socket:bids:call credit:1:-1", State::Parked),
    ("ready:1:sync:2 arrive:x park:x:socket:bids:call credit:1:-2 deaf said:x:a", State::Routed),
    ("ready:1:sync:1 deaf arrive:a park:a:query:alone:answer credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:query:alone:answer began:a credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:query:alone:answer cancelquery:a credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:query:alone:call credit:1:-1", State::Parked),
    ("ready:1:concurrent:1 deaf arrive:a park:a:query:begin:await credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a enqueue:a answer:a credit:1:-1", State::Parked),
    ("ready:1:concurrent:1 deaf arrive:a enqueue:a park:a:stored:all:await credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:job:x@2s:answer found:a:pending credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:job:x@2s:answer credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:file:-:answer credit:1:-1", State::Parked),
    ("ready:1:sync:1 deaf arrive:a park:a:file:-:answer filebegan:a credit:1:-1", State::Parked),
    ("ready:1:sync:0 deaf claimed:a", State::Routed),
    ("ready:1:sync:1 deaf claimed:a", State::Running),
    ("ready:1:sync:9 arrive:x answer:x arrive:b deaf arrive:a", State::Running),
    ("ready:1:concurrent:1 deaf claimed:a park:a:timer:2s:await credit:1:-1", State::Parked),
    ("ready:1 deaf arrive:a answer:a", State::Done),
    ("ready:1 deaf arrive:a left:a", State::Cancelled),
];

const DEADLINE: &str = "deadline";
const LEFT: &str = "client left";

/// What happens, and how it is called in the diagram.
const HAPPENINGS: [(&str, &str); 33] = [
    ("routed:a:/sync", "routed"),
    ("routed:a:/next", "routed to a wait"),
    ("routed:a:/constant", "routed to a constant"),
    ("routed:a:/missing", "routed nowhere"),
    ("reload ready:2:sync:0:b", "other routes"),
    ("credit:1:1", "given to a worker"),
    ("answer:a", "answered"),
    ("end:a", "answer ended"),
    ("error:a", "errored"),
    ("closed:a", "WebSocket closed"),
    ("park:a:timer:9s:answer", "parked"),
    ("publish:bids", "message"),
    ("began:a", "rows began"),
    ("ended:a", "query ended"),
    ("failed:a", "query failed"),
    ("cancelquery:a", "query cancelled"),
    ("filebegan:a", "file began"),
    ("filesent:a", "file sent"),
    ("filebroken:a", "file broken off"),
    ("nofile:a", "no file"),
    ("return:a", "returned"),
    ("stored:a", "jobs stored"),
    ("full:a", "jobs not stored"),
    ("over:x", "job ended"),
    ("found:a:missing", "no such job"),
    ("stop:a", "job cancelled"),
    ("left:a", LEFT),
    ("served:a", "client left with all"),
    ("operator:a", "operator"),
    ("wait:10s", DEADLINE),
    ("exited:1", "worker died"),
    ("drain:30s", "server drains"),
    ("drain:0", "grace over"),
];

fn diagram() -> String {
    let mut moves: BTreeMap<(State, State), Vec<&str>> = BTreeMap::new();
    for (story, from) in STATES {
        for (happening, name) in HAPPENINGS {
            let config = if story.contains("claimed") { of_jobs(1) } else { config() };
            let mut script = Script::run(config, story);
            assert_eq!(script.state("a"), Some(from), "{story}");
            script.go_on(happening);
            let to = script.state("a").expect("a state is known until the slot is used again");
            // The time that ends a wait is no deadline.
            let name = if name == DEADLINE && from == State::Parked { "time is up" } else { name };
            // With a response that has not begun, nobody has all of it.
            let name = if happening == "served:a" && to == State::Cancelled { LEFT } else { name };
            let names = moves.entry((from, to)).or_default();
            if to != from && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    written(&moves)
}

fn written(moves: &BTreeMap<(State, State), Vec<&str>>) -> String {
    let mut text =
        String::from("```mermaid\nstateDiagram-v2\n    [*] --> Accepted: arrived\n    [*] --> Routed: claimed, said\n");
    for ((from, to), names) in moves.iter().filter(|((from, to), _)| from != to) {
        writeln!(text, "    {from:?} --> {to:?}: {}", names.join(", ")).unwrap();
    }
    text + "    Done --> [*]\n    Cancelled --> [*]\n```\n"
}

#[test]
fn the_diagram_is_what_the_machine_does() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("ARCHITECTURE.md has a place for the diagram");
    let (drawn, after) = rest.split_once(END).expect("the place for the diagram ends");
    let is = diagram();
    if std::env::var_os("PARKADE_BLESS").is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{is}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(drawn, is, "PARKADE_BLESS=1 cargo test --test diagram writes it");
}

#[test]
fn nothing_leaves_an_end() {
    let ends = STATES.into_iter().filter(|(_, state)| matches!(state, State::Done | State::Cancelled));
    for (story, end) in ends {
        for (happening, _) in HAPPENINGS {
            let config = if story.contains("claimed") { of_jobs(1) } else { config() };
            let mut script = Script::run(config, story);
            script.go_on(happening);
            assert_eq!(script.state("a"), Some(end), "{story} {happening}");
        }
    }
}
