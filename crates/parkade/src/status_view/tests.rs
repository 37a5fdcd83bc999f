//! The commands against real admin endpoints, over a private socket.

use std::path::PathBuf;

use parkade_model::{Cursor, EventName};

use super::*;
use crate::admin::access::WritePolicy;
use crate::admin::{AdminDoor, Ask, Readiness, Site, serve_private};

/// Runs `operator` against admin endpoints whose server answers with `state`.
fn beside_a_server(name: &str, state: &str, operator: impl FnOnce(&AdminAddress) + Send + 'static) {
    let folder = PathBuf::from(format!("/tmp/parkade-view-{name}-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (door, mut asks) = AdminDoor::new();
        let (_serving, socket) = serve_private(&folder, &Site::new(door, &[], WritePolicy::default()));
        let address = AdminAddress::Unix(socket);
        let server = async {
            while let Some(ask) = asks.recv().await {
                match ask {
                    Ask::Ready { reply } => reply.send(Readiness::Ready).unwrap(),
                    Ask::Status { reply } => {
                        reply.send(Report { state: state.into(), ..Report::default() }.into()).unwrap();
                    }
                    Ask::CancelQuery { query, reply } => reply
                        .send(if query.0 == 7 { Ok(()) } else { Err(crate::admin::CancelRefused::Unknown) })
                        .unwrap(),
                    Ask::Jobs { .. }
                    | Ask::Reload { .. }
                    | Ask::ReloadEnd { .. }
                    | Ask::Snapshot { .. }
                    | Ask::ScriptCame { .. }
                    | Ask::ScriptSaid { .. }
                    | Ask::CancelRequest { .. }
                    | Ask::Stop { .. } => {
                        unreachable!("these tests ask for no jobs, no reload and no stop")
                    }
                    Ask::Publish { channel, content_type, body, event, reply } => {
                        assert_eq!(
                            (channel.as_str(), &*content_type, &*body),
                            ("a b/%", "application/json", &b"{}"[..])
                        );
                        assert_eq!(event.as_ref().map(EventName::as_str), Some("typing &c"));
                        reply.send(Ok(Cursor { epoch: 26, sequence: 3 })).unwrap();
                    }
                }
            }
        };
        let operator = tokio::task::spawn_blocking(move || operator(&address));
        tokio::select! {
            done = operator => done.unwrap(),
            () = server => unreachable!("the door is open"),
        }
    });
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "the socket is gone with the server");
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn the_status_comes_over_the_private_socket() {
    beside_a_server("status", "ready", |address| assert_eq!(report(address).unwrap().state, "ready"));
}

#[test]
fn a_message_goes_over_the_private_socket() {
    beside_a_server("publish", "ready", |address| {
        let path = format!("/publish/{}", percent_encoded("a b/%"));
        let path = format!("{path}?event={}", percent_encoded("typing &c"));
        assert_eq!(address.ask("POST", &path, "application/json", b"{}").unwrap(), br#"{"cursor":"1a.3"}"#);
    });
}

#[test]
fn a_refusal_is_told_in_the_words_of_the_server() {
    beside_a_server("refusal", "ready", |address| {
        let large = vec![b'x'; 600 * 1024];
        let refused = address.ask("POST", "/publish/a", "text/plain", &large).unwrap_err().to_string();
        assert_eq!(
            refused,
            "parkade refused the request (413): a message has at most 524288 bytes; publish a reference to larger data"
        );
    });
}

#[test]
fn a_server_that_is_gone_is_said_to_be_so() {
    let error = AdminAddress::Unix("/nowhere/1.sock".into()).ask("GET", "/status", "", b"").unwrap_err().to_string();
    let expected = "cannot reach parkade at /nowhere/1.sock: No such file or directory (os error 2); is it running?";
    assert_eq!(error, expected);
}
