//! Spans as OTLP has them, in JSON (opentelemetry-proto, `ExportTraceServiceRequest`).

use parkade_model::write_hex;
use serde_json::{Value as Json, json};

use super::settings::Collector;
use super::span::{AttributeValue, Span};

/// Numbers of `Status.code`.
const ERROR: u8 = 2;

/// The body of a request to the collector. Each span has the first moment, in nanoseconds since 1970.
pub fn body(collector: &Collector, spans: &[(u64, Span)]) -> Vec<u8> {
    let text = |text: &str| AttributeValue::Text(text.to_owned());
    let mut resource = vec![
        ("service.name", text(&collector.service)),
        ("telemetry.sdk.name", text("parkade")),
        ("telemetry.sdk.language", text("rust")),
        ("telemetry.sdk.version", text(env!("CARGO_PKG_VERSION"))),
        ("process.pid", AttributeValue::Number(std::process::id().into())),
    ];
    resource.extend(collector.resource.iter().map(|(key, value)| (&**key, text(value))));
    let spans: Vec<Json> = spans.iter().map(|(epoch, span)| of_span(span, *epoch)).collect();
    let body = json!({ "resourceSpans": [{
        "resource": { "attributes": attributes(&resource) },
        "scopeSpans": [{ "scope": { "name": "parkade", "version": env!("CARGO_PKG_VERSION") }, "spans": spans }],
    }] });
    serde_json::to_vec(&body).expect("texts and numbers can always be written as JSON")
}

fn of_span(span: &Span, epoch: u64) -> Json {
    // 64-bit numbers are texts in the JSON of Protocol Buffers; ids are hexadecimal in that of OTLP.
    let nanos = |moment: parkade_core::Moment| (epoch + moment.as_nanos()).to_string();
    let mut told = json!({
        "traceId": hex(&span.trace),
        "spanId": hex(&span.id),
        "flags": 1,
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanos(span.from),
        "endTimeUnixNano": nanos(span.to),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = &span.parent {
        told["parentSpanId"] = hex(parent).into();
    }
    if let Some((trace, id)) = &span.link {
        told["links"] = json!([{ "traceId": hex(trace), "spanId": hex(id) }]);
    }
    if let Some(error) = &span.error {
        told["status"] = json!({ "code": ERROR, "message": error });
    }
    told
}

fn attributes(all: &[(&str, AttributeValue)]) -> Vec<Json> {
    let value = |value: &AttributeValue| match value {
        AttributeValue::Text(text) => json!({ "stringValue": text }),
        AttributeValue::Number(number) => json!({ "intValue": number.to_string() }),
    };
    all.iter().map(|(name, told)| json!({ "key": name, "value": value(told) })).collect()
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = vec![0; 2 * bytes.len()];
    write_hex(bytes, &mut digits);
    String::from_utf8_lossy(&digits).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::span::SpanKind;
    use parkade_core::Moment;

    #[test]
    fn a_span_is_written_as_otlp_has_it() {
        let span = Span {
            trace: [0x4b; 16],
            id: [1; 8],
            parent: Some([2; 8]),
            name: "GET /x".into(),
            kind: SpanKind::Server,
            from: Moment::from_nanos(5),
            to: Moment::from_nanos(7),
            attributes: vec![
                ("http.response.status_code", AttributeValue::Number(503)),
                ("url.path", AttributeValue::Text("/x".into())),
            ],
            link: Some(([3; 16], [4; 8])),
            error: Some(String::new()),
        };
        let (headers, resource) = (vec![], vec![("host.name".to_owned(), "a".to_owned())]);
        let collector = Collector { url: "".into(), headers, service: "shop".into(), resource };
        let told: Json = serde_json::from_slice(&body(&collector, &[(1_000_000_000_000_000_000, span)])).unwrap();
        let resource = &told["resourceSpans"][0]["resource"]["attributes"];
        assert_eq!(resource[0], json!({ "key": "service.name", "value": { "stringValue": "shop" } }));
        assert_eq!(resource[5], json!({ "key": "host.name", "value": { "stringValue": "a" } }));
        assert_eq!(
            told["resourceSpans"][0]["scopeSpans"][0]["spans"][0],
            json!({
                "traceId": "4b".repeat(16), "spanId": "01".repeat(8), "parentSpanId": "02".repeat(8), "flags": 1,
                "name": "GET /x", "kind": 2,
                "startTimeUnixNano": "1000000000000000005", "endTimeUnixNano": "1000000000000000007",
                "attributes": [
                    { "key": "http.response.status_code", "value": { "intValue": "503" } },
                    { "key": "url.path", "value": { "stringValue": "/x" } },
                ],
                "links": [{ "traceId": "03".repeat(16), "spanId": "04".repeat(8) }],
                "status": { "code": 2, "message": "" },
            })
        );
    }
}
