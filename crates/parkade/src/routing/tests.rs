//! Route tables: every case of `protocol/vectors/routes.json`, and cases that it does not have.

use std::time::Duration;

use parkade_core::{Destination, RouteId};
use parkade_model::{ChannelName, TableId, Then, Wait};
use parkade_wire::RequestBody;
use serde_json::Value;

use super::TableOwner;
use super::limits::ROUTES_COUNT_MAX;
use super::{Fallback, RouteError, RouteMatch, RouteSpec, RouteTables, RouteWork};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../protocol/vectors/routes.json")).unwrap()
}

fn spec(methods: &[&str], path: &str) -> RouteSpec {
    let methods = methods.iter().map(ToString::to_string).collect();
    RouteSpec {
        methods,
        path: path.into(),
        kind: RouteWork::Sync,
        deadline: None,
        body: RequestBody::Collected,
        websocket: false,
    }
}

fn learn(tables: &mut RouteTables<()>, fallback: bool, routes: Vec<RouteSpec>) -> Result<TableId, RouteError> {
    let fallback = fallback.then(Fallback::default);
    tables.learn(TableOwner::default(), fallback, routes.into_iter().map(|route| (route, ())).collect(), |_| true)
}

/// Why routes are refused; `None` if they are accepted.
fn refused(routes: Vec<RouteSpec>) -> Option<RouteError> {
    learn(&mut RouteTables::default(), false, routes).err()
}

fn find(tables: &RouteTables<()>, table: TableId, method: &str, path: &str) -> RouteMatch {
    tables.find(Some(table), method, path, Some(Duration::from_secs(9)))
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// The result of a look-up in the notation of the vectors.
fn found(tables: &RouteTables<()>, table: TableId, request: &Value) -> Value {
    let found = find(tables, table, request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
    match found.destination {
        Destination::Handler { route, .. } => {
            serde_json::json!({"match": {"route": route.index, "parameters": found.parameters}})
        }
        Destination::MethodNotAllowed => {
            serde_json::json!({"allow": found.allow.unwrap().split(", ").collect::<Vec<&str>>()})
        }
        Destination::NotFound | Destination::DotSegment => serde_json::json!({"none": true}),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_vector_is_found_as_it_says() {
    let mut checked = 0;
    for case in vectors()["cases"].as_array().unwrap() {
        let mut tables = RouteTables::default();
        let routes = case["routes"].as_array().unwrap();
        let routes = routes.iter().map(|route| spec(&texts(&route["methods"]), route["path"].as_str().unwrap()));
        let table = learn(&mut tables, false, routes.collect()).unwrap();
        for request in case["requests"].as_array().unwrap() {
            let found = found(&tables, table, request);
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
        assert_eq!(refused(vec![spec(&["GET"], text)]), Some(RouteError::Path(text.to_owned())), "{path}");
    }
}

#[test]
fn equal_tables_have_one_id() {
    let mut tables = RouteTables::default();
    let mut learn = |fallback, path| learn(&mut tables, fallback, vec![spec(&["GET"], path)]).unwrap();
    let (one, other, third) = (learn(false, "/a"), learn(false, "/b"), learn(true, "/a"));
    assert_eq!((learn(false, "/a"), learn(false, "/b"), learn(true, "/a")), (one, other, third));
    assert!(one != other && one != third && other != third);
}

#[test]
fn what_the_routes_of_a_table_have_ready_is_what_was_declared_last() {
    let mut tables = RouteTables::default();
    let mut learn =
        |ready| tables.learn(TableOwner::default(), None, vec![(spec(&["GET"], "/a"), ready)], |_| true).unwrap();
    let (first, second) = (learn("first"), learn("second"));
    assert_eq!(first, second);
    assert_eq!(tables.ready(RouteId { table: first, index: 0 }), Some(&"second"));
    assert_eq!(tables.ready(RouteId { table: first, index: 1 }), None);
}

/// However many reloads have happened since.
#[test]
fn a_table_is_forgotten_when_no_request_is_looked_up_in_it_and_none_holds_a_route_of_it() {
    let mut tables = RouteTables::default();
    let mut learn = |nth: u32, used: u32| {
        let table =
            tables.learn(TableOwner::default(), None, vec![(spec(&["GET"], &format!("/{nth}")), nth)], |table| {
                table.0 == used
            });
        assert_eq!(table, Ok(TableId(nth)));
        let route = RouteId { table: TableId(nth), index: 0 };
        (nth == 2).then(|| tables.hold(route).unwrap())
    };
    let held = (1..=100).fold(None, |held, nth| learn(nth, 1).or(held));
    let first = |table| RouteId { table: TableId(table), index: 0 };
    let known = |tables: &RouteTables<u32>| {
        (1..=101).filter(|&table| tables.ready(first(table)) == Some(&table)).collect::<Vec<u32>>()
    };
    assert_eq!(known(&tables), [1, 2, 100], "one is used, one is held, one was just learned");
    assert_eq!(held.as_ref().map(super::HeldRoute::id), Some(first(2)));
    drop(held);
    tables.learn(TableOwner::default(), None, vec![(spec(&["GET"], "/101"), 101)], |_| false).unwrap();
    assert_eq!(known(&tables), [101]);
    assert_eq!(tables.find(Some(TableId(2)), "GET", "/2", None).destination, Destination::Unknown);
    assert!(tables.hold(first(2)).is_none());
}

#[test]
fn with_a_fallback_nothing_is_not_found() {
    let mut tables = RouteTables::default();
    let table = learn(&mut tables, true, vec![spec(&["POST"], "/a/{x:int}")]).unwrap();
    for (method, path) in [("GET", "/a/1"), ("POST", "/a/x"), ("POST", "/a/%FF"), ("POST", "*")] {
        assert_eq!(
            find(&tables, table, method, path).destination,
            Destination::Fallback { table, concurrent: false },
            "{path}"
        );
    }
}

#[test]
fn a_path_that_leads_upwards_matches_no_route() {
    let goes_to = |resolves_dots, fallback: Option<Fallback>| {
        let mut tables = RouteTables::default();
        let owner = TableOwner { is_hosted: resolves_dots, resolves_dots, ..TableOwner::default() };
        let routes = vec![(spec(&["GET"], "/a/{rest:path}"), ())];
        let table = tables.learn(owner, fallback, routes, |_| true).unwrap();
        find(&tables, table, "GET", "/a/../b").destination
    };
    assert_eq!(goes_to(false, None), Destination::DotSegment);
    assert_eq!(goes_to(false, Some(Fallback::default())), Destination::DotSegment);
    assert_eq!(goes_to(true, None), Destination::NotFound);
    assert!(matches!(goes_to(true, Some(Fallback::default())), Destination::Fallback { .. }));
}

#[test]
fn before_the_first_table_everything_is_unknown() {
    assert_eq!(RouteTables::<()>::default().find(None, "GET", "/", None).destination, Destination::Unknown);
}

#[test]
fn a_deadline_is_the_routes_own_or_the_servers() {
    let mut tables = RouteTables::default();
    let with = |path: &str, deadline| RouteSpec { deadline, ..spec(&["GET"], path) };
    let own = Duration::from_secs(1);
    let routes = vec![with("/own", Some(Some(own))), with("/none", Some(None)), with("/servers", None)];
    let table = learn(&mut tables, false, routes).unwrap();
    let deadline = |path| match find(&tables, table, "GET", path).destination {
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
    let refused = |wait: &Wait, then| {
        let kind = RouteWork::Wait { wait: wait.clone(), then };
        refused(vec![RouteSpec { kind, ..spec(&["GET"], "/bids") }])
    };
    assert_eq!(refused(&next, Then::Answer), None);
    assert_eq!(refused(&next, Then::Call { concurrent: false }), None);
    assert_eq!(refused(&stream, Then::Answer), None);
    assert_eq!(refused(&next, Then::Await), Some(RouteError::Wait("/bids".into())));
    assert_eq!(refused(&stream, Then::Call { concurrent: false }), Some(RouteError::Wait("/bids".into())));
}

/// Two kinds at each of 12 levels: if each fork tried all ways again, this would not end.
#[test]
fn a_search_looks_at_each_node_once() {
    let mut tables = RouteTables::default();
    let segment = |nth: u32, level: u32| format!("/{{p{level}{}}}", if nth >> level & 1 == 1 { ":int" } else { "" });
    let path = |nth: u32| (0..12).map(|level| segment(nth, level)).collect::<String>() + "/end";
    let routes = (0..4096).map(|nth| spec(&["GET"], &path(nth))).collect();
    let table = learn(&mut tables, false, routes).unwrap();
    assert_eq!(find(&tables, table, "GET", &"/1".repeat(13)).destination, Destination::NotFound);
}

#[test]
fn an_application_has_so_many_routes_and_no_more() {
    let routes = |count| (0..count).map(|nth| spec(&[], &format!("/{nth}"))).collect();
    assert_eq!(refused(routes(ROUTES_COUNT_MAX)), None);
    assert_eq!(refused(routes(ROUTES_COUNT_MAX + 1)), Some(RouteError::TooMany));
}
