//! The page that `parkade dev` shows in a browser while the application does not load. Workers show other errors, and
//! the routes.
//!
//! The page asks regularly whether anything has changed, and reloads itself when it has.

use bytes::Bytes;
use parkade_model::Refusal;

use crate::http::Head;
use crate::http::page::{document, escaped};
use crate::words;

/// The header with which a page asks whether anything has changed; the answer is [`Development::stamp`].
const ASKING_FIELD: &str = "x-parkade-dev";

#[derive(Debug, Default)]
pub struct Development {
    /// Why the current code does not load.
    error: Option<String>,
    /// How often code has loaded, or failed to.
    stamp: u64,
}

/// A response that replaces the core's.
pub struct DevPage {
    pub status: u16,
    pub content_type: &'static [u8],
    pub body: Bytes,
}

impl Development {
    pub fn failed(&mut self, text: &str) {
        self.error = Some(text.trim_end().to_owned());
        self.stamp += 1;
    }

    pub fn loaded(&mut self) {
        self.error = None;
        self.stamp += 1;
    }

    /// Whether this request gets a page, whatever its route is: old code may still serve, and would hide the error.
    pub fn takes(&self, head: &Head) -> bool {
        asks(head) || self.error.is_some() && is_page(head)
    }

    /// The page that replaces this refusal, if a browser shows it.
    pub fn page(&self, head: &Head, refusal: Refusal) -> Option<DevPage> {
        if asks(head) {
            let body = self.stamp.to_string().into();
            return Some(DevPage { status: 200, content_type: b"text/plain", body });
        }
        let error = self.error.as_deref().filter(|_| is_page(head))?;
        matches!(refusal, Refusal::NotFound | Refusal::NoApplication).then(|| DevPage {
            status: 500,
            content_type: b"text/html; charset=utf-8",
            body: self.error_page(error).into(),
        })
    }

    fn error_page(&self, error: &str) -> String {
        let reason = words::reason_of_load_error(error);
        let body = format!(
            "<h1>The application does not load</h1>\n<p class=what>{}</p>\n<pre>{}</pre>\n\
             <p>This page reloads itself as soon as the code has changed.</p>\n<script>{}</script>",
            escaped(reason),
            escaped(error),
            SCRIPT.replace("STAMP", &self.stamp.to_string()),
        );
        document("The application does not load", &body)
    }
}

/// Reloads the page when the stamp is no longer that of the page.
const SCRIPT: &str = "\
setInterval(async () => {
  try {
    const answer = await fetch(location.href, {headers: {'x-parkade-dev': 'stamp'}, cache: 'no-store'});
    if (await answer.text() !== 'STAMP') location.reload();
  } catch { /* the server is being restarted */ }
}, 500);";

fn asks(head: &Head) -> bool {
    head.field(ASKING_FIELD).is_some()
}

/// Whether a browser shows the response: it asks for HTML by name, programs do not.
fn is_page(head: &Head) -> bool {
    matches!(head.method(), "GET" | "HEAD") && head.field("accept").is_some_and(|accept| accept.contains("text/html"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse_head;

    fn request(target: &str, fields: &str) -> Head {
        parse_head(format!("GET {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n").as_bytes(), 10).unwrap()
    }

    const BROWSER: &str = "Accept: text/html,*/*\r\n";

    #[test]
    fn an_error_is_shown_to_browsers_until_the_code_loads() {
        let mut development = Development::default();
        assert!(!development.takes(&request("/", BROWSER)));
        development.failed("Traceback\nSyntaxError: <b>\n");
        assert!(development.takes(&request("/", BROWSER)) && !development.takes(&request("/", "Accept: */*\r\n")));
        let page = development.page(&request("/", BROWSER), Refusal::NotFound).unwrap();
        let html = String::from_utf8(page.body.into()).unwrap();
        assert_eq!(page.status, 500);
        assert!(html.contains("SyntaxError: &lt;b&gt;") && html.contains("!== '1'"), "{html}");
        assert!(development.page(&request("/", ""), Refusal::NoApplication).is_none());
        development.loaded();
        assert!(!development.takes(&request("/", BROWSER)));
    }

    #[test]
    fn a_page_that_asks_is_told_how_often_the_code_was_loaded() {
        let mut development = Development::default();
        development.failed("x");
        development.loaded();
        let asking = request("/", "X-Parkade-Dev: stamp\r\n");
        assert!(development.takes(&asking));
        assert_eq!(&development.page(&asking, Refusal::NotFound).unwrap().body[..], b"2");
    }
}
