//! Routes: every case of `protocol/vectors/routes.json`, and what they do not say.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

use std::time::Duration;

use parkade_core::{ChannelName, Config, Core, Destination, RouteError, RouteKind, RouteSpec, TableId, Then, Wait};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../protocol/vectors/routes.json")).unwrap()
}

fn spec(methods: &[&str], path: &str) -> RouteSpec {
    let methods = methods.iter().map(ToString::to_string).collect();
    RouteSpec { methods, path: path.into(), kind: RouteKind::Sync, deadline: None }
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// What a search found, written as the vectors write it.
fn found(core: &Core, table: TableId, request: &Value) -> Value {
    let found = core.find_in(table, request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
    match found.destination {
        Destination::Handler { route, .. } => {
            serde_json::json!({"match": {"route": route.index, "parameters": found.parameters}})
        }
        Destination::MethodNotAllowed => {
            serde_json::json!({"allow": found.allow.unwrap().split(", ").collect::<Vec<&str>>()})
        }
        Destination::NotFound => serde_json::json!({"none": true}),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_vector_is_found_as_it_says() {
    let mut checked = 0;
    for case in vectors()["cases"].as_array().unwrap() {
        let mut core = Core::new(Config::default());
        let routes = case["routes"].as_array().unwrap();
        let routes = routes.iter().map(|route| spec(&texts(&route["methods"]), route["path"].as_str().unwrap()));
        let table = core.learn_routes(false, routes.collect()).unwrap();
        for request in case["requests"].as_array().unwrap() {
            let found = found(&core, table, request);
            let (key, is) = found.as_object().unwrap().iter().next().unwrap();
            assert_eq!(request.get(key), Some(is), "{}: {request}", case["name"]);
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} vectors");
}

#[test]
fn every_refused_pattern_is_refused() {
    for path in vectors()["refused"].as_array().unwrap() {
        let text = path.as_str().or_else(|| path["path"].as_str()).unwrap();
        let learned = Core::new(Config::default()).learn_routes(false, vec![spec(&["GET"], text)]);
        assert_eq!(learned, Err(RouteError::Path(text.to_owned())), "{path}");
    }
}

#[test]
fn equal_tables_have_one_id() {
    let mut core = Core::new(Config::default());
    let mut learn = |fallback, path| core.learn_routes(fallback, vec![spec(&["GET"], path)]).unwrap();
    let (one, other, third) = (learn(false, "/a"), learn(false, "/b"), learn(true, "/a"));
    assert_eq!((learn(false, "/a"), learn(false, "/b"), learn(true, "/a")), (one, other, third));
    assert!(one != other && one != third && other != third);
}

#[test]
fn with_a_fallback_nothing_is_not_found() {
    let mut core = Core::new(Config::default());
    let table = core.learn_routes(true, vec![spec(&["POST"], "/a/{x:int}")]).unwrap();
    for (method, path) in [("GET", "/a/1"), ("POST", "/a/x"), ("POST", "/a/%FF"), ("POST", "*")] {
        assert_eq!(core.find_in(table, method, path).destination, Destination::Fallback { table }, "{path}");
    }
}

#[test]
fn before_the_first_table_everything_is_unknown() {
    assert_eq!(Core::new(Config::default()).find("GET", "/").destination, Destination::Unknown);
}

#[test]
fn a_deadline_is_the_routes_own_or_the_servers() {
    let mut core = Core::new(Config { deadline: Some(Duration::from_secs(9)), ..Config::default() });
    let with = |path: &str, deadline| RouteSpec { deadline, ..spec(&["GET"], path) };
    let own = Duration::from_secs(1);
    let routes = vec![with("/own", Some(Some(own))), with("/none", Some(None)), with("/servers", None)];
    let table = core.learn_routes(false, routes).unwrap();
    let deadline = |path| match core.find_in(table, "GET", path).destination {
        Destination::Handler { deadline, .. } => deadline,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (deadline("/own"), deadline("/none"), deadline("/servers")),
        (Some(own), None, Some(Duration::from_secs(9)))
    );
}

#[test]
fn a_route_cannot_have_a_wait_that_needs_a_worker_of_its_own() {
    let channel = ChannelName::parse("bids").unwrap();
    let next = Wait::Next { channel: channel.clone(), timeout: None, since: None };
    let stream = Wait::Stream { channel, since: None };
    let learn = |wait: &Wait, then| {
        let kind = RouteKind::Wait { wait: wait.clone(), then };
        Core::new(Config::default()).learn_routes(false, vec![RouteSpec { kind, ..spec(&["GET"], "/bids") }])
    };
    assert!(
        learn(&next, Then::Answer).is_ok()
            && learn(&next, Then::Call { concurrent: false }).is_ok()
            && learn(&stream, Then::Answer).is_ok()
    );
    assert_eq!(learn(&next, Then::Await), Err(RouteError::Wait("/bids".into())));
    assert_eq!(learn(&stream, Then::Call { concurrent: false }), Err(RouteError::Wait("/bids".into())));
}

/// Two kinds at each of 12 levels: were every way tried again from each fork, this would not end.
#[test]
fn a_search_looks_at_each_node_once() {
    let mut core = Core::new(Config::default());
    let segment = |nth: u32, level: u32| format!("/{{p{level}{}}}", if nth >> level & 1 == 1 { ":int" } else { "" });
    let path = |nth: u32| (0..12).map(|level| segment(nth, level)).collect::<String>() + "/end";
    let table = core.learn_routes(false, (0..4096).map(|nth| spec(&["GET"], &path(nth))).collect()).unwrap();
    assert_eq!(core.find_in(table, "GET", &"/1".repeat(13)).destination, Destination::NotFound);
}
