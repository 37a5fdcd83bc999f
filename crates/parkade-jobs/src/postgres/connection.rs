//! The settings of the store's connections.

use std::io;

use parkade_postgres::{Database, Options};

use super::limits::{CHECK_INTERVAL, CONNECT_TIME_MAX, ROW_BYTES_MAX, SLOTS, WINDOW_BYTES};
use super::{Settings, notifications};

/// Every plan goes by index, row by row, even if it was made while the tables were empty, or after they were analysed:
/// a statement takes a few rows, however many there are.
const PLANS: &str = "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off \
                     -c jit=off -c statement_timeout=60s -c default_transaction_isolation=read\\ committed";

/// Connects to nothing yet.
pub fn database(mut settings: Settings, registry: mio::Registry, first_token: usize) -> io::Result<Database> {
    settings.options = Some(settings.options.map_or(PLANS.to_owned(), |given| format!("{given} {PLANS}")));
    let driver = Options {
        slots: SLOTS,
        queue_count_max: SLOTS * 2,
        row_bytes_max: ROW_BYTES_MAX,
        window_bytes: WINDOW_BYTES,
        application_name: "parkade jobs".into(),
        listen: notifications::CHANNELS.map(Into::into).to_vec(),
        connect_timeout: CONNECT_TIME_MAX,
        check_interval: CHECK_INTERVAL,
    };
    Database::new(settings, driver, registry, first_token)
}
