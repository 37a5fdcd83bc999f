//! Words as waits.

use std::time::Duration;

use parkade_core::{
    ChannelName, CloseCall, Cursor, DatabaseId, Errand, GroupEnd, GroupWait, QueryWait, QueryWork, SharedKey, Sharing,
    Then, Wait,
};

use super::{duration, jobs};

pub(super) fn wait(kind: &str, of: &str) -> Wait {
    if kind == "timer" {
        return Wait::Timer { after: duration(of) };
    }
    if kind == "file" {
        return Wait::File;
    }
    if kind == "all" || kind == "first" {
        let until = if kind == "all" { GroupEnd::All } else { GroupEnd::First };
        return Wait::Group(GroupWait { until, count: of.parse().unwrap() });
    }
    if kind == "branches" {
        return Wait::Branches;
    }
    if kind == "stored" {
        return Wait::Stored;
    }
    if kind == "job" {
        let (name, timeout) = of.split_once('@').map_or((of, None), |(name, timeout)| (name, Some(duration(timeout))));
        return Wait::Job { job: jobs::job(name), timeout };
    }
    if kind == "follow" {
        let channel = ChannelName::parse(&format!("jobs/{of}")).unwrap();
        return Wait::Visit { job: jobs::job(of), errand: Errand::Events { channel, since: None } };
    }
    if kind == "visit" {
        let (name, timeout) = of.split_once('@').map_or((of, None), |(name, timeout)| (name, Some(duration(timeout))));
        return Wait::Visit { job: jobs::job(name), errand: Errand::Result { timeout } };
    }
    if kind == "cancel" {
        return Wait::Visit { job: jobs::job(of), errand: Errand::Cancel };
    }
    if kind == "access" {
        return Wait::Access { granted: of == "yes" };
    }
    if kind == "published" {
        return Wait::Published { number: of.parse().unwrap() };
    }
    if kind == "history" {
        let (name, count) = of.split_once('@').map_or((of, None), |(name, count)| (name, count.parse().ok()));
        return Wait::History { channel: ChannelName::parse(name).unwrap(), count };
    }
    if kind == "query" {
        return Wait::Query(query(of));
    }
    let (name, since) = of.split_once('@').map_or((of, None), |(name, since)| (name, Some(since)));
    let (channel, since) = (ChannelName::parse(name).unwrap(), since.map(|since| since.parse::<Cursor>().unwrap()));
    match kind {
        "next" => Wait::Next { channel, timeout: Some(Duration::from_secs(5)), since },
        "socket" => Wait::Socket { channel, since, on_close: None },
        "closing" => Wait::Socket { channel, since, on_close: Some(CloseCall { concurrent: false }) },
        "closing+async" => Wait::Socket { channel, since, on_close: Some(CloseCall { concurrent: true }) },
        _ => Wait::Stream { channel, since },
    }
}

fn query(of: &str) -> QueryWait {
    let alone = QueryWait { database: DatabaseId(0), deadline: None, work: QueryWork::Alone, shared: None };
    let transaction = |work| QueryWait { work, ..alone.clone() };
    let shared = |key: &str, ttl| QueryWait {
        shared: Some(Sharing {
            key: SharedKey(std::array::from_fn(|at| key.as_bytes().get(at).copied().unwrap_or(0))),
            ttl,
        }),
        ..alone.clone()
    };
    match of.split('@').collect::<Vec<&str>>()[..] {
        ["alone"] => alone,
        ["alone", deadline] => QueryWait { deadline: Some(duration(deadline)), ..alone },
        ["shared", key] => shared(key, Duration::ZERO),
        ["shared", key, ttl] => shared(key, duration(ttl)),
        ["begin"] => transaction(QueryWork::Begin),
        ["within"] => transaction(QueryWork::Within),
        ["commit"] => transaction(QueryWork::Commit),
        ["rollback"] => transaction(QueryWork::Rollback),
        _ => panic!("no such query: {of}"),
    }
}

pub(super) fn sequel(then: &str) -> Then {
    match then {
        "answer" => Then::Answer,
        "call" => Then::Call { concurrent: false },
        "call+async" => Then::Call { concurrent: true },
        _ => Then::Await,
    }
}
