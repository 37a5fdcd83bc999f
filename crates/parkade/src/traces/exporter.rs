//! Sends spans to a collector, in a thread of its own. It never holds up the server: what the collector does not take in
//! time is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Instant;

use super::limits::{
    ANSWER_TIME_MAX, ATTEMPT_PAUSE, ATTEMPTS_COUNT_MAX, BATCH_COUNT_MAX, BATCH_TIME, FLUSH_TIME_MAX, QUEUED_BYTES_MAX,
    QUEUED_COUNT_MAX,
};
use super::otlp;
use super::settings::Collector;
use super::span::Span;

/// What has become of spans.
#[derive(Debug, Default)]
pub struct ExportCounts {
    pub exported: AtomicU64,
    pub dropped: AtomicU64,
    queued: AtomicUsize,
    queued_bytes: AtomicUsize,
}

impl ExportCounts {
    /// These spans wait to be sent. Returns whether there is room for them.
    fn queue(&self, spans: &[(u64, Span)]) -> bool {
        let bytes = bytes_of(spans);
        let queued = self.queued.fetch_add(spans.len(), Ordering::Relaxed) + spans.len();
        let queued_bytes = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        queued <= QUEUED_COUNT_MAX && queued_bytes <= QUEUED_BYTES_MAX
    }

    /// They wait no longer.
    fn leave(&self, spans: &[(u64, Span)]) {
        self.queued.fetch_sub(spans.len(), Ordering::Relaxed);
        self.queued_bytes.fetch_sub(bytes_of(spans), Ordering::Relaxed);
    }
}

fn bytes_of(spans: &[(u64, Span)]) -> usize {
    spans.iter().map(|(_, span)| span.bytes()).sum()
}

/// When dropped, sends what is left, for a short time.
pub struct Exporter {
    spans: Option<Sender<Vec<(u64, Span)>>>,
    counts: Arc<ExportCounts>,
    /// Closed by the thread when it ends.
    ended: Receiver<()>,
}

impl Exporter {
    pub fn start(collector: Collector) -> std::io::Result<Self> {
        let (spans, queue) = channel();
        let (running, ended) = channel::<()>();
        let counts = Arc::new(ExportCounts::default());
        let sender = BatchSender::new(collector, Arc::clone(&counts));
        thread::Builder::new().name("traces".into()).spawn(move || {
            let _running = running;
            export(&queue, sender);
        })?;
        Ok(Self { spans: Some(spans), counts, ended })
    }

    pub fn counts(&self) -> &ExportCounts {
        &self.counts
    }

    /// Never waits. Each span has the first moment, in nanoseconds since 1970.
    pub fn send(&self, spans: Vec<(u64, Span)>) {
        let refused = match &self.spans {
            Some(channel) if self.counts.queue(&spans) => channel.send(spans).err().map(|unsent| unsent.0),
            Some(_) | None => Some(spans),
        };
        if let Some(spans) = refused {
            self.counts.leave(&spans);
            self.note_dropped(spans.len() as u64);
        }
    }

    pub fn note_dropped(&self, count: u64) {
        self.counts.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.spans = None;
        if let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(FLUSH_TIME_MAX) {
            tracing::warn!(
                "the trace collector did not accept the last spans before the server stopped; they are lost"
            );
        }
    }
}

/// Ends when the server does, after a last attempt for what is left.
fn export(queue: &Receiver<Vec<(u64, Span)>>, mut sender: BatchSender) {
    let mut batch: Vec<(u64, Span)> = Vec::new();
    let mut due = Instant::now() + BATCH_TIME;
    loop {
        let heard = queue.recv_timeout(due.saturating_duration_since(Instant::now()));
        let is_over = matches!(heard, Err(RecvTimeoutError::Disconnected));
        batch.extend(heard.unwrap_or_default());
        while batch.len() >= BATCH_COUNT_MAX {
            let rest = batch.split_off(BATCH_COUNT_MAX);
            sender.send(&batch, is_over);
            batch = rest;
        }
        if is_over || Instant::now() >= due {
            sender.send(&batch, is_over);
            batch.clear();
            due = Instant::now() + BATCH_TIME;
        }
        if is_over {
            return;
        }
    }
}

struct BatchSender {
    agent: ureq::Agent,
    collector: Collector,
    counts: Arc<ExportCounts>,
    /// The last batch was not taken, and the log says so.
    has_failed: bool,
}

/// Why a batch was not taken.
struct NotTaken {
    why: String,
    /// It may be taken later.
    may_pass: bool,
}

impl BatchSender {
    fn new(collector: Collector, counts: Arc<ExportCounts>) -> Self {
        let roots: Vec<_> = if collector.url.starts_with("https:") {
            let found = rustls_native_certs::load_native_certs().certs;
            found.into_iter().map(|der| ureq::tls::Certificate::from_der(&der).to_owned()).collect()
        } else {
            Vec::new()
        };
        let tls = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::new_with_certs(&roots)).build();
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(ANSWER_TIME_MAX))
            .http_status_as_error(false)
            // Headers with keys are for this collector and for nobody whom it names.
            .max_redirects(0)
            .tls_config(tls)
            .build();
        Self { agent: config.into(), collector, counts, has_failed: false }
    }

    /// `is_last`: the server stops, so there is one attempt.
    fn send(&mut self, batch: &[(u64, Span)], is_last: bool) {
        if batch.is_empty() {
            return;
        }
        let body = otlp::body(&self.collector, batch);
        let mut pause = ATTEMPT_PAUSE;
        let mut outcome = self.post(&body);
        for _ in 1..ATTEMPTS_COUNT_MAX {
            match &outcome {
                Err(NotTaken { may_pass: true, .. }) if !is_last && !self.has_failed => thread::sleep(pause),
                Ok(()) | Err(_) => break,
            }
            pause += pause;
            outcome = self.post(&body);
        }
        let count = batch.len() as u64;
        match outcome {
            Ok(()) => {
                self.counts.exported.fetch_add(count, Ordering::Relaxed);
                if std::mem::take(&mut self.has_failed) {
                    tracing::info!("the trace collector accepts spans again");
                }
            }
            Err(NotTaken { why, .. }) => {
                self.counts.dropped.fetch_add(count, Ordering::Relaxed);
                if !std::mem::replace(&mut self.has_failed, true) {
                    let url = &*self.collector.shown_url();
                    tracing::warn!(url, "the trace collector accepts no spans; they are dropped until it does: {why}");
                }
            }
        }
        self.counts.leave(batch);
    }

    fn post(&self, body: &[u8]) -> Result<(), NotTaken> {
        let mut request = self.agent.post(&*self.collector.url).header("content-type", "application/json");
        for (name, value) in &self.collector.headers {
            request = request.header(name, value);
        }
        let answer = request.send(body).map_err(|error| NotTaken { why: error.to_string(), may_pass: true })?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            // Those that the protocol says may be repeated.
            status @ (429 | 502..=504) => Err(NotTaken { why: format!("it answers {status}"), may_pass: true }),
            status => Err(NotTaken { why: format!("it answers {status}"), may_pass: false }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;
    use crate::traces::limits::TEXT_BYTES_MAX;
    use crate::traces::span::{Attribute, SpanKind, text};
    use parkade_core::Moment;

    fn span(attributes: Vec<Attribute>) -> Span {
        Span {
            trace: [1; 16],
            id: [1; 8],
            parent: None,
            name: "GET".into(),
            kind: SpanKind::Server,
            from: Moment::default(),
            to: Moment::default(),
            attributes,
            link: None,
            error: None,
        }
    }

    fn collector(at: &TcpListener, headers: Vec<(String, String)>) -> Collector {
        let url = format!("http://{}/v1/traces", at.local_addr().unwrap()).into();
        Collector { url, headers, service: "shop".into(), resource: vec![] }
    }

    /// Another host would get the headers, with keys in them.
    #[test]
    fn a_redirect_is_not_followed() {
        let (asked, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let exporter = Exporter::start(collector(&asked, vec![("x-key".into(), "secret".into())])).unwrap();
        exporter.send(vec![(0, span(vec![]))]);
        let answering = thread::spawn(move || {
            let (mut client, _) = asked.accept().unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"}") {
                let mut some = [0; 4096];
                let count = client.read(&mut some).unwrap();
                read.extend_from_slice(&some[..count]);
            }
            let at = other.local_addr().unwrap();
            let answer = format!("HTTP/1.1 303 See Other\r\nlocation: http://{at}/\r\ncontent-length: 0\r\n\r\n");
            client.write_all(answer.as_bytes()).unwrap();
            (String::from_utf8(read).unwrap(), other)
        });
        let counts = Arc::clone(&exporter.counts);
        drop(exporter);
        let (read, other) = answering.join().unwrap();
        assert!(read.contains("x-key: secret"), "{read}");
        assert_eq!(counts.dropped.load(Ordering::Relaxed), 1);
        other.set_nonblocking(true).unwrap();
        assert_eq!(other.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn long_texts_do_not_fill_the_memory_while_the_collector_hangs() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let exporter = Exporter::start(collector(&silent, vec![])).unwrap();
        let long = "x".repeat(TEXT_BYTES_MAX);
        let span = span(vec![("url.path", text(&long)), ("user_agent.original", text(&long))]);
        for _ in 0..100 {
            exporter.send(vec![(0, span.clone()); 100]);
        }
        let counts = exporter.counts();
        let kept = 10_000 - counts.dropped.load(Ordering::Relaxed);
        assert!((3_000..4_000).contains(&kept), "{kept}");
        assert!(counts.queued_bytes.load(Ordering::Relaxed) <= QUEUED_BYTES_MAX);
    }
}
