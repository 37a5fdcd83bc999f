//! A small HTML page that needs nothing else: no script, no image, no other file.

const STYLE: &str = "\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 3rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 }
.status { margin: 0; color: light-dark(#57606a, #9198a1) }
.detail::first-letter { text-transform: uppercase }
.what { font-family: ui-monospace, monospace; color: light-dark(#a40e26, #ff8182) }
pre { overflow-x: auto; padding: 1rem; border-radius: .5rem; background: light-dark(#f3f4f6, #1f2328) }";

/// The title and the body are HTML: text in them has been [escaped].
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n{body}\n</html>\n"
    )
}

/// Text as HTML, also inside a quoted attribute.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
