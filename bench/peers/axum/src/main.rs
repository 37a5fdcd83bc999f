//! The smallest axum server that does the benchmarks' work: what an engineer would write in an afternoon.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use tokio::net::TcpSocket;
use tokio::sync::broadcast::Sender;

type Message = axum::body::Bytes;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8000".into()).parse()?;
    let channel: Sender<Message> = Sender::new(16);
    let app = Router::new()
        .route("/constant", get(|| async { "Hola" }))
        .route("/hola/{name}", get(|Path(name): Path<String>| async move { format!("Hola {name}") }))
        .route("/delayed", get(|| wait(2)))
        .route("/later", get(|| wait(60)))
        .route("/next", get(next))
        .route("/publish", post(publish))
        .with_state(channel);
    // The default backlog of 1024 would drop connections while 20,000 clients arrive.
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    axum::serve(socket.listen(4096)?, app).await?;
    Ok(())
}

async fn wait(seconds: u64) -> &'static str {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    "done"
}

async fn next(State(channel): State<Sender<Message>>) -> Result<Message, StatusCode> {
    match tokio::time::timeout(Duration::from_secs(60), channel.subscribe().recv()).await {
        Ok(Ok(message)) => Ok(message),
        _ => Err(StatusCode::NO_CONTENT),
    }
}

async fn publish(State(channel): State<Sender<Message>>, message: Message) -> StatusCode {
    let _ = channel.send(message);
    StatusCode::ACCEPTED
}
