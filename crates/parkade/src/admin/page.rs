//! The admin page: three files that are part of the binary, and what they are fed with.

mod feed;

use http_body_util::Full;
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response};

use super::answers::{AdminAnswer, allow};
pub use feed::{EventStream, Feed};

/// Nothing from elsewhere, nothing inline, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const FIELDS: [(HeaderName, &str); 5] = [
    (HeaderName::from_static("content-security-policy"), POLICY),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (CACHE_CONTROL, "no-cache"),
];

/// A file of the page; `None` if the path is none of them. The page itself is only for browsers.
pub fn file(method: &Method, path: &str, headers: &HeaderMap) -> Option<AdminAnswer> {
    let (content_type, text) = match path {
        "/" if accepts_html(headers) => ("text/html; charset=utf-8", include_str!("page/page.html")),
        "/page.css" => ("text/css; charset=utf-8", include_str!("page/page.css")),
        "/page.js" => ("text/javascript; charset=utf-8", include_str!("page/page.js")),
        _ => return None,
    };
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Some(allow("GET, HEAD"));
    }
    let mut answer = Response::new(Full::from(text));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in FIELDS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Some(answer)
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .any(|range| range.split(';').next().unwrap_or_default().trim() == "text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_get_the_page_and_programs_do_not() {
        let headers = |accept: &'static str| HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        let page = file(&Method::GET, "/", &headers("application/xhtml+xml,text/html;q=0.9,*/*;q=0.8")).unwrap();
        assert!(page.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
        assert!(file(&Method::GET, "/", &headers("*/*")).is_none());
        assert!(file(&Method::GET, "/", &HeaderMap::new()).is_none());
        assert_eq!(file(&Method::POST, "/page.js", &headers("*/*")).unwrap().status(), 405);
    }

    #[test]
    fn nothing_is_inline_or_from_elsewhere() {
        let page = include_str!("page/page.html");
        assert!(!page.contains("<style") && !page.contains("style=") && !page.contains(" onclick"));
        for text in [page, include_str!("page/page.css"), include_str!("page/page.js")] {
            let addresses = text.matches("://").count();
            assert_eq!(addresses, text.matches("http://www.w3.org/").count(), "only names of standards");
        }
        let script = include_str!("page/page.js");
        for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!script.contains(forbidden), "{forbidden}: texts of clients would become HTML");
        }
    }
}
