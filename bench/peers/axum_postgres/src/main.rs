//! The smallest axum server with PostgreSQL: a pool of 16, prepared statements, what an engineer would write in an
//! afternoon.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use deadpool_postgres::{Config, Pool, PoolConfig, Runtime};
use tokio::net::TcpSocket;
use tokio_postgres::NoTls;

const POOL_SIZE: usize = 16;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("an address is needed")?.parse()?;
    let config = Config { url: arguments.next(), pool: Some(PoolConfig::new(POOL_SIZE)), ..Config::default() };
    let app = Router::new()
        .route("/constant", get(|| async { "Hola" }))
        .route("/one", get(one))
        .route("/queued", get(queued))
        .with_state(config.create_pool(Some(Runtime::Tokio1), NoTls)?);
    // The default backlog of 1024 would drop connections while 10,000 clients arrive.
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    axum::serve(socket.listen(4096)?, app).await?;
    Ok(())
}

async fn one(State(pool): State<Pool>) -> Result<String, StatusCode> {
    value(&pool, "select 1").await
}

async fn queued(State(pool): State<Pool>) -> Result<String, StatusCode> {
    value(&pool, "select 1 from pg_sleep(25)").await
}

async fn value(pool: &Pool, sql: &str) -> Result<String, StatusCode> {
    let client = pool.get().await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let asked = async { client.query_one(&client.prepare_cached(sql).await?, &[]).await };
    let row = asked.await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(row.get::<_, i32>(0).to_string())
}
