//! The pages that `parkade dev` shows in a browser: while the application does not load, and, with its routes, for a path
//! without one. Workers show other errors.
//!
//! The first asks regularly whether anything has changed, and reloads itself when it has.

use bytes::Bytes;
use parkade_model::Refusal;
use parkade_wire::Application;

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
    /// Those of the code that was loaded last.
    routes: Vec<ListedRoute>,
}

/// A route, for people.
#[derive(Debug)]
struct ListedRoute {
    methods: String,
    path: String,
    function: String,
    source: String,
}

/// A request that the core refuses.
#[derive(Debug, Clone, Copy)]
pub struct RefusedHead<'a> {
    pub head: &'a Head,
    pub refusal: Refusal,
    /// A path that differs by a slash at its end, and has a route.
    pub other: Option<&'a str>,
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

    /// The routes of an application at this prefix.
    pub fn learn_routes(&mut self, application: &Application, prefix: &str) {
        let listed = application.routes.iter().map(|route| ListedRoute {
            methods: route.methods.join(", "),
            path: format!("{prefix}{}", route.path),
            function: route
                .origin
                .handler
                .as_deref()
                .map_or("", |name| name.rsplit(':').next().unwrap_or_default())
                .into(),
            source: route.origin.source.clone().unwrap_or_default(),
        });
        self.routes = listed.collect();
    }

    /// Whether this request gets a page, whatever its route is: old code may still serve, and would hide the error.
    pub fn takes(&self, head: &Head) -> bool {
        asks(head) || self.error.is_some() && is_page(head)
    }

    /// The page that replaces this refusal, if a browser shows it.
    pub fn page(&self, refused: RefusedHead) -> Option<DevPage> {
        let RefusedHead { head, refusal, .. } = refused;
        if asks(head) {
            let body = self.stamp.to_string().into();
            return Some(DevPage { status: 200, content_type: b"text/plain", body });
        }
        if !is_page(head) {
            return None;
        }
        let (status, body) = match (&self.error, refusal) {
            (Some(error), Refusal::NotFound | Refusal::NoApplication) => (500, self.error_page(error)),
            (None, Refusal::NotFound) if !self.routes.is_empty() => (404, self.routes_page(refused)),
            _ => return None,
        };
        Some(DevPage { status, content_type: b"text/html; charset=utf-8", body: body.into() })
    }

    fn routes_page(&self, RefusedHead { head, other, .. }: RefusedHead) -> String {
        let title = format!("There is no route for {} {}", escaped(head.method()), escaped(head.path()));
        let hint = other.map(|other| format!("<p>There is one for {}.</p>\n", escaped(other))).unwrap_or_default();
        let rows = self.routes.iter().map(|route| {
            let ListedRoute { methods, path, function, source } = route;
            let [methods, path, function, source] = [methods, path, function, source].map(|text| escaped(text));
            format!("<tr><td>{methods}<td><code>{path}</code><td>{function}<td>{source}\n")
        });
        let rows: String = rows.collect();
        let body = format!("<h1>{title}</h1>\n{hint}<p>The routes of the application:</p>\n<table>\n{rows}</table>");
        document(&title, &body)
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

    fn page(development: &Development, head: &Head, refusal: Refusal) -> Option<DevPage> {
        development.page(RefusedHead { head, refusal, other: Some("/orders/") })
    }

    const BROWSER: &str = "Accept: text/html,*/*\r\n";

    #[test]
    fn an_error_is_shown_to_browsers_until_the_code_loads() {
        let mut development = Development::default();
        assert!(!development.takes(&request("/", BROWSER)));
        development.failed("Traceback\nSyntaxError: <b>\n");
        assert!(development.takes(&request("/", BROWSER)) && !development.takes(&request("/", "Accept: */*\r\n")));
        let shown = page(&development, &request("/", BROWSER), Refusal::NotFound).unwrap();
        let html = String::from_utf8(shown.body.into()).unwrap();
        assert_eq!(shown.status, 500);
        assert!(html.contains("SyntaxError: &lt;b&gt;") && html.contains("!== '1'"), "{html}");
        assert!(page(&development, &request("/", ""), Refusal::NoApplication).is_none());
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
        assert_eq!(&page(&development, &asking, Refusal::NotFound).unwrap().body[..], b"2");
    }

    #[test]
    fn a_path_without_a_route_lists_the_routes_for_browsers() {
        let route = |path: &str| ListedRoute {
            methods: "GET".into(),
            path: path.into(),
            function: "show".into(),
            source: "app.py:7".into(),
        };
        let mut development = Development::default();
        assert!(page(&development, &request("/x", BROWSER), Refusal::NotFound).is_none(), "it has no routes");
        development.routes = vec![route("/orders/{id}"), route("/<b>")];
        let listed = page(&development, &request("/<x>", BROWSER), Refusal::NotFound).unwrap();
        let html = String::from_utf8(listed.body.into()).unwrap();
        assert_eq!(listed.status, 404);
        for told in [
            "GET /&lt;x&gt;",
            "<code>/orders/{id}</code>",
            "/&lt;b&gt;",
            "show",
            "app.py:7",
            "There is one for /orders/.",
        ] {
            assert!(html.contains(told), "{told} in {html}");
        }
        assert!(page(&development, &request("/x", "Accept: */*\r\n"), Refusal::NotFound).is_none());
        assert!(page(&development, &request("/x", BROWSER), Refusal::ApplicationFailed).is_none());
        development.failed("broken");
        assert_eq!(page(&development, &request("/x", BROWSER), Refusal::NotFound).unwrap().status, 500);
    }
}
