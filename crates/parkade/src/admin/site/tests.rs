//! Who is let through to the endpoints, asked without a socket.

use super::*;
use crate::admin::access::TokenDigest;
use crate::admin::door::Ask;

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// Everything that changes something.
fn changes() -> Vec<String> {
    let fixed =
        ["POST /stop?now", "POST /reload", "POST /publish/a", "POST /queries/7/cancel", "POST /requests/7.3/cancel"];
    let jobs = [
        "POST /jobs",
        &format!("DELETE /jobs/{ID}"),
        &format!("POST /jobs/{ID}/retry"),
        &format!("POST /jobs/{ID}/cancel"),
    ];
    fixed.into_iter().chain(jobs).map(str::to_owned).collect()
}

/// The status of the answer, and whether the server was asked for anything.
async fn sent_by_a_page(line: &str, writes: &WritePolicy) -> (u16, bool) {
    let (door, mut asks) = AdminDoor::new();
    let site = Site::new(door, &[], writes.clone());
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(path);
    let request = request.header("origin", "http://127.0.0.1:9000").header("host", "127.0.0.1:9000");
    let request = request.header("authorization", "Bearer 0123456789abcdef");
    let request = request.body(Full::from(r#"{"name":"x"}"#)).unwrap();
    let via = Via::Tcp { address: "127.0.0.1".parse().unwrap() };
    tokio::select! {
        answer = site.answer(request, via) => (answer.status().as_u16(), asks.try_recv().is_ok()),
        Some(ask) = asks.recv() => {
            assert!(!matches!(ask, Ask::Status { .. } | Ask::Ready { .. }), "{line} is carried out");
            (0, true)
        }
    }
}

#[tokio::test]
async fn a_page_changes_nothing_at_any_endpoint() {
    for line in changes() {
        for writes in [WritePolicy::Local, WritePolicy::Off] {
            assert_eq!(sent_by_a_page(&line, &writes).await, (403, false), "{line}");
        }
    }
}

#[tokio::test]
async fn the_admin_page_with_the_token_reaches_every_endpoint() {
    let writes = WritePolicy::Token(TokenDigest::new("0123456789abcdef"));
    for line in changes() {
        assert_eq!(sent_by_a_page(&line, &writes).await, (0, true), "{line}");
    }
}
