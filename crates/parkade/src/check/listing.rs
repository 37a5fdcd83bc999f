//! What `parkade routes` prints: each route and job, who answers, and what is easily overlooked.

use std::collections::HashMap;
use std::fmt::Write;

use parkade_wire::{Application, JobAccess, JobSpec, RecurringSpec, Route, RouteKind, RouteOrigin, ThenRequest, When};
use serde::Serialize;

use crate::application::waits;
use crate::language::Functions;
use crate::seconds;
use crate::words;

/// All that is listed, as JSON has it.
#[derive(Debug, PartialEq, Serialize)]
pub struct Listing {
    /// The prefix of all paths below; only if the settings file mounts the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    mount: Option<String>,
    /// `native`, `wsgi` or `asgi`.
    interface: String,
    routes: Vec<RouteView>,
    jobs: Vec<JobView>,
    recurring: Vec<RecurringView>,
}

#[derive(Debug, PartialEq, Serialize)]
struct RouteView {
    methods: Vec<String>,
    path: String,
    /// `wait`, `constant` or `jobs`, or a word of the language: `def`, `async def`, `sub`, `async sub`.
    kind: &'static str,
    /// The name by which the application links to it.
    name: Option<String>,
    /// The function, as `module:name`.
    handler: Option<String>,
    /// Where it is written, as `file:line`.
    source: Option<String>,
    /// What a request waits for.
    wait: Option<String>,
    /// The function that is called after the wait.
    then: Option<String>,
    /// Seconds; 0 is none, null the server's.
    deadline: Option<f64>,
    /// Methods for which an earlier route of the same path is called.
    shadowed: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize)]
struct JobView {
    name: String,
    kind: &'static str,
    /// Where it is written, as `file:line`.
    source: Option<String>,
    queue: String,
    retries: u32,
    priority: i16,
    deadline: Option<f64>,
    /// `public`, `private` or `function`.
    access: &'static str,
}

#[derive(Debug, PartialEq, Serialize)]
struct RecurringView {
    name: String,
    job: String,
    when: String,
}

impl Listing {
    /// `functions`: the words of its language. `mount`: where the settings file mounts it.
    pub fn of(told: &Application, functions: Functions, mount: Option<&str>) -> Self {
        let prefix = mount.unwrap_or_default().trim_end_matches('/');
        let mut first: HashMap<(String, String), usize> = HashMap::new();
        let routes = told.routes.iter().enumerate().map(|(place, route)| {
            let shape = shape(&route.path);
            let mut is_shadowed =
                |method: &str| *first.entry((method.to_owned(), shape.clone())).or_insert(place) != place;
            let shadowed = route.methods.iter().filter(|method| is_shadowed(method)).cloned().collect();
            RouteView { path: format!("{prefix}{}", route.path), ..RouteView::of(route, functions, shadowed) }
        });
        Self {
            mount: mount.map(str::to_owned),
            interface: told.interface.clone(),
            routes: routes.collect(),
            jobs: told.jobs.iter().map(|job| JobView::of(job, functions)).collect(),
            recurring: told.recurring.iter().map(RecurringView::of).collect(),
        }
    }

    /// Whether the server has no other.
    pub fn is_alone(&self) -> bool {
        self.mount.is_none()
    }

    pub fn text(&self) -> String {
        let source = |source: &Option<String>| source.clone().unwrap_or_default();
        let routes = self.routes.iter();
        let routes =
            routes.map(|route| [route.methods.join(","), route.path.clone(), source(&route.source), route.text()]);
        let jobs = self.jobs.iter();
        let jobs = jobs.map(|job| ["job".into(), job.name.clone(), source(&job.source), self.text_of(job)]);
        let others = self.recurring.iter().filter(|recurring| self.jobs.iter().all(|job| job.name != recurring.job));
        let others =
            others.map(|recurring| ["every".into(), recurring.job.clone(), String::new(), recurring.when.clone()]);
        let rows: Vec<[String; 4]> = routes.chain(jobs).chain(others).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        let mut text = if self.interface == "native" {
            String::new()
        } else {
            format!(
                "The application decides its paths itself: it is written for {}.\n",
                words::interface(&self.interface)
            )
        };
        for [columns @ .., last] in &rows {
            for (column, width) in columns.iter().zip(widths).filter(|(_, width)| *width > 0) {
                let _ = write!(text, "{column:width$}  ");
            }
            text += last;
            text.push('\n');
        }
        text
    }

    fn text_of(&self, job: &JobView) -> String {
        let mut text = format!("{}, queue {}, retries {}", job.kind, job.queue, job.retries);
        if job.priority != 0 {
            let _ = write!(text, ", priority {}", job.priority);
        }
        text += &deadline(job.deadline);
        text += match job.access {
            "private" => ", private",
            "function" => ", access by a function",
            _ => "",
        };
        for recurring in self.recurring.iter().filter(|recurring| recurring.job == job.name) {
            let _ = write!(text, ", {}", recurring.when);
        }
        text
    }
}

impl RouteView {
    fn of(route: &Route, functions: Functions, shadowed: Vec<String>) -> Self {
        let (kind, wait, then) = match &route.kind {
            RouteKind::Sync => (functions.plain, None, None),
            RouteKind::Async if route.websocket => ("websocket", None, None),
            RouteKind::Async => (functions.coroutine, None, None),
            RouteKind::Wait { wait, then } => ("wait", Some(waits::in_words(wait)), called(then)),
            RouteKind::Constant(_) => ("constant", None, None),
            RouteKind::Job => ("jobs", None, None),
        };
        let (methods, path) = (route.methods.clone(), route.path.clone());
        let RouteOrigin { name, handler, source } = route.origin.clone();
        Self { methods, path, kind, name, handler, source, wait, then, deadline: route.deadline, shadowed }
    }

    /// The handler without its module, which the file tells.
    fn function(&self) -> Option<&str> {
        self.handler.as_deref().map(|handler| handler.rsplit_once(':').map_or(handler, |(_, function)| function))
    }

    fn text(&self) -> String {
        let mut text = match (&self.wait, &self.then) {
            (Some(wait), None) => format!("wait: {wait}, no worker"),
            (Some(wait), Some(then)) => format!("wait: {wait}, then {then}"),
            (None, _) if matches!(self.kind, "constant" | "jobs") => format!("{}, no worker", self.kind),
            (None, _) => self.kind.to_owned(),
        };
        let function = self.function();
        if let Some(function) = function {
            let _ = write!(text, " {function}");
        }
        text += &deadline(self.deadline);
        if let Some(name) = self.name.as_deref().filter(|name| Some(*name) != function && self.kind != "jobs") {
            let _ = write!(text, ", name {name}");
        }
        if !self.shadowed.is_empty() {
            let _ = write!(text, "  <- never called for {}: the first route of this path is", self.shadowed.join(", "));
        }
        text
    }
}

impl JobView {
    fn of(job: &JobSpec, functions: Functions) -> Self {
        Self {
            name: job.name.clone(),
            source: job.source.clone(),
            kind: if job.concurrent { functions.coroutine } else { functions.plain },
            queue: job.queue.clone(),
            retries: job.retries,
            priority: job.priority,
            deadline: job.deadline,
            access: match job.access {
                JobAccess::Public => "public",
                JobAccess::Private => "private",
                JobAccess::Asked(_) => "function",
            },
        }
    }
}

impl RecurringView {
    fn of(recurring: &RecurringSpec) -> Self {
        let when = match &recurring.when {
            When::Every(seconds) => format!("every {}", seconds::in_words(*seconds)),
            When::Cron { fields, timezone } => format!("cron {fields} ({timezone})"),
        };
        Self { name: recurring.name.clone(), job: recurring.job.clone(), when }
    }
}

fn called(then: &ThenRequest) -> Option<String> {
    match then {
        ThenRequest::Call { function, .. } => Some(function.clone()),
        ThenRequest::Answer { .. } | ThenRequest::Await | ThenRequest::Branch { .. } => None,
    }
}

fn deadline(seconds: Option<f64>) -> String {
    match seconds {
        None => String::new(),
        Some(0.0) => ", no deadline".into(),
        Some(seconds) => format!(", deadline {}", seconds::in_words(seconds)),
    }
}

/// Which names parameters have makes no difference: `/{a}` and `/{b}` are the same path.
fn shape(path: &str) -> String {
    let segments =
        path.split('/').map(|segment| match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(parameter) => format!("{{{}}}", parameter.split_once(':').map_or("", |(_, kind)| kind)),
            None => segment.to_owned(),
        });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use parkade_model::Missed;
    use parkade_wire::{QueryRequest, WaitRequest};

    use super::*;
    use crate::language::Language;

    fn python() -> Functions {
        Language::functions(Some("python"))
    }

    fn route(method: &str, path: &str, kind: RouteKind, deadline: Option<f64>) -> Route {
        let origin = RouteOrigin::default();
        Route {
            methods: vec![method.into()],
            path: path.into(),
            deadline,
            cors: None,
            kind,
            body: parkade_wire::RequestBody::Collected,
            websocket: false,
            origin,
        }
    }

    fn told(name: &str, handler: &str, source: &str) -> RouteOrigin {
        let [name, handler, source] = [name, handler, source].map(|text| Some(text.to_owned()));
        RouteOrigin { name, handler, source }
    }

    fn application() -> Application {
        let wait = |wait, then| RouteKind::Wait { wait, then };
        let next = WaitRequest::Next {
            channel: parkade_model::ChannelName::parse("news").unwrap(),
            timeout: Some(Duration::from_secs(30)),
            since: None,
        };
        let render = ThenRequest::Call {
            function: "shop:render".into(),
            state: [].as_slice().into(),
            kind: parkade_wire::CallKind::Sync,
        };
        let query = QueryRequest {
            text: "select *\n  from bids".into(),
            parameters: vec![],
            options: parkade_wire::QueryOptions::default(),
        };
        let job = JobSpec {
            name: "clean".into(),
            concurrent: false,
            queue: "default".into(),
            retries: 3,
            deadline: Some(120.0),
            priority: -5,
            access: JobAccess::Private,
            source: Some("jobs.py:3".into()),
        };
        let recurring = |job: &str, when| RecurringSpec {
            name: job.into(),
            job: job.into(),
            arguments: [].as_slice().into(),
            when,
            missed: Missed::Once,
            key: None,
        };
        Application {
            interface: "native".into(),
            concurrent: false,
            threads: 1,
            fallback: false,
            fallback_kind: parkade_wire::CallKind::Async,
            fallback_body: parkade_wire::RequestBody::Collected,
            websocket: false,
            routes: vec![
                Route {
                    origin: told("show", "shop.orders:show", "shop/orders.py:12"),
                    ..route("GET", "/{a}", RouteKind::Sync, Some(2.5))
                },
                Route {
                    origin: told("orders.all", "shop.orders:Pages.all", "shop/orders.py:120"),
                    ..route("GET", "/{b}", RouteKind::Async, Some(0.0))
                },
                route("POST", "/{b}", RouteKind::Async, None),
                route("GET", "/news", wait(next, ThenRequest::Answer { response: None, added: None }), None),
                route("GET", "/bids", wait(WaitRequest::Query(Box::new(query)), render), None),
            ],
            channels: vec![],
            jobs: vec![job],
            queues: vec![],
            headers: parkade_wire::Headers::default(),
            cors: vec![],
            unmatched_cors: None,
            watch: vec![],
            recurring: vec![
                recurring("clean", When::Every(10.0)),
                recurring("elsewhere", When::Cron { fields: "0 3 * * *".into(), timezone: "UTC".into() }),
            ],
        }
    }

    #[test]
    fn a_listing_says_who_answers_and_what_is_easily_overlooked() {
        let expected = "\
GET    /{a}       shop/orders.py:12   def show, deadline 2.5 s
GET    /{b}       shop/orders.py:120  async def Pages.all, no deadline, name orders.all  <- never called for GET: the first route of this path is
POST   /{b}                           async def
GET    /news                          wait: next message of news, at most 30 s, no worker
GET    /bids                          wait: query: select * from bids, then shop:render
job    clean      jobs.py:3           def, queue default, retries 3, priority -5, deadline 2 min, private, every 10 s
every  elsewhere                      cron 0 3 * * * (UTC)
";
        assert_eq!(Listing::of(&application(), python(), None).text(), expected);
    }

    #[test]
    fn a_worker_that_does_not_say_where_routes_are_written_leaves_no_gap() {
        let mut silent = application();
        silent.routes.drain(..2);
        silent.jobs.clear();
        silent.recurring.clear();
        assert!(Listing::of(&silent, python(), None).text().starts_with("POST  /{b}   async def\n"));
    }

    #[test]
    fn functions_are_called_what_their_language_calls_them() {
        let listed = Listing::of(&application(), Language::functions(Some("perl")), None).text();
        for told in [
            "  sub show, deadline 2.5 s\n",
            "  async sub Pages.all, no deadline",
            "jobs.py:3           sub, queue default",
        ] {
            assert!(listed.contains(told), "{told:?} in {listed}");
        }
        assert!(!listed.contains("def,"), "{listed}");
    }

    #[test]
    fn json_has_the_same() {
        let told = serde_json::to_value(Listing::of(&application(), python(), None)).unwrap();
        assert_eq!(told["routes"][1]["shadowed"], serde_json::json!(["GET"]));
        assert_eq!(told["routes"][4]["then"], "shop:render");
        assert_eq!(told["routes"][1]["name"], "orders.all");
        assert_eq!(told["routes"][1]["handler"], "shop.orders:Pages.all");
        assert_eq!(told["routes"][1]["source"], "shop/orders.py:120");
        assert_eq!(told["jobs"][0]["source"], "jobs.py:3");
        assert_eq!(told["jobs"][0]["access"], "private");
        assert_eq!(told["recurring"][0], serde_json::json!({ "name": "clean", "job": "clean", "when": "every 10 s" }));
    }
}
