//! Where spans go: the settings, and the variables of OpenTelemetry for what they leave open.

use crate::config::TraceSettings;

/// Where a collector takes spans, beneath the address that is given.
const PATH: &str = "/v1/traces";
/// The value that turns off what a variable of OpenTelemetry would turn on.
const OFF: &str = "off";
const SERVICE: &str = "service.name";

/// Where spans go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    pub url: Box<str>,
    pub headers: Vec<(String, String)>,
    pub service: Box<str>,
    /// Further attributes of the service: where it is deployed, its version.
    pub resource: Vec<(String, String)>,
}

impl Collector {
    /// `None`: spans are not recorded. `application`: the name of the service if none is given.
    pub fn of(
        settings: &TraceSettings,
        application: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let below = |base: String| format!("{}{PATH}", base.trim_end_matches('/'));
        let given = settings.otlp_endpoint.clone().map(|endpoint| ("--otlp-endpoint", endpoint, true));
        let of_traces =
            || Some(("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")?, false));
        let of_all = || Some(("OTEL_EXPORTER_OTLP_ENDPOINT", variable("OTEL_EXPORTER_OTLP_ENDPOINT")?, true));
        let Some((name, endpoint, is_base)) = given.or_else(of_traces).or_else(of_all) else { return Ok(None) };
        let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        if endpoint == OFF || is_disabled && settings.otlp_endpoint.is_none() {
            return Ok(None);
        }
        let has_host = ["http://", "https://"]
            .iter()
            .any(|scheme| endpoint.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        if !has_host {
            return Err(format!("{name}: write a URL such as http://localhost:4318, or off"));
        }
        let url = if is_base { below(endpoint) } else { endpoint };
        let headers = variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| variable("OTEL_EXPORTER_OTLP_HEADERS"));
        let mut resource = variable("OTEL_RESOURCE_ATTRIBUTES").as_deref().map(pairs).unwrap_or_default();
        let service = settings.service_name.clone().or_else(|| variable("OTEL_SERVICE_NAME"));
        let service = service.or_else(|| resource.iter().find(|(key, _)| key == SERVICE).map(|(_, name)| name.clone()));
        resource.retain(|(key, _)| key != SERVICE);
        Ok(Some(Self {
            url: url.into(),
            headers: headers.as_deref().map(pairs).unwrap_or_default(),
            service: service.unwrap_or_else(|| name_of(application).to_owned()).into(),
            resource,
        }))
    }
}

impl Collector {
    /// The URL without a user's name and password, for the log.
    pub fn shown_url(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("", &self.url));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        format!("{scheme}://{host}{path}")
    }
}

/// `name=value,name=value`, percent-encoded (the form of W3C Baggage).
fn pairs(text: &str) -> Vec<(String, String)> {
    let decoded = |value: &str| percent_encoding::percent_decode_str(value.trim()).decode_utf8_lossy().into_owned();
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), decoded(value))).collect()
}

/// `shop` for `folder/shop.py:app`.
fn name_of(application: &str) -> &str {
    let file = application.rsplit('/').next().unwrap_or(application);
    let name = file.split(':').next().unwrap_or(file);
    name.strip_suffix(".py").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(endpoint: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<Collector>, String> {
        let settings = TraceSettings { otlp_endpoint: endpoint.map(Into::into), service_name: None, trace_ratio: 1.0 };
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Collector::of(&settings, "folder/shop.py:app", variable)
    }

    fn url(endpoint: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        check(endpoint, variables).unwrap().map(|collector| collector.url.into())
    }

    #[test]
    fn a_collector_is_given_by_a_setting_or_by_the_variables_of_opentelemetry() {
        const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://all:4318/");
        const TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4318/here");
        assert_eq!(url(None, &[]), None);
        assert_eq!(url(None, &[ALL]).as_deref(), Some("https://all:4318/v1/traces"));
        assert_eq!(url(None, &[ALL, TRACES]).as_deref(), Some("http://traces:4318/here"));
        assert_eq!(url(Some("http://own:1"), &[ALL, TRACES]).as_deref(), Some("http://own:1/v1/traces"));
        assert_eq!(url(Some("off"), &[ALL]), None);
        for disabled in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert_eq!(url(None, &[ALL, disabled]), None);
            assert!(url(Some("http://own:1"), &[disabled]).is_some(), "the setting says so");
        }
        assert_eq!(
            check(Some("own:1"), &[]).unwrap_err(),
            "--otlp-endpoint: write a URL such as http://localhost:4318, or off"
        );
        assert!(check(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://x")]).is_err());
    }

    #[test]
    fn the_log_shows_no_password() {
        for (url, shown) in [
            ("https://me:secret@host:4318", "https://host:4318/v1/traces"),
            ("https://a@b@host/x@y", "https://host/x@y/v1/traces"),
            ("http://host", "http://host/v1/traces"),
        ] {
            assert_eq!(check(Some(url), &[]).unwrap().unwrap().shown_url(), shown);
        }
    }

    #[test]
    fn headers_and_the_name_of_the_service_are_read() {
        let variables = [("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, y = c"), ("OTEL_SERVICE_NAME", "till")];
        let collector = check(Some("http://x"), &variables).unwrap().unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(collector.headers, [pair("x-key", "a b"), pair("y", "c")]);
        assert_eq!(&*collector.service, "till");
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=desk");
        let collector = check(Some("http://x"), &[attributes]).unwrap().unwrap();
        assert_eq!(collector.resource, [pair("deployment.environment.name", "test")]);
        assert_eq!(&*collector.service, "desk");
        assert_eq!(&*check(Some("http://x"), &[]).unwrap().unwrap().service, "shop");
    }
}
