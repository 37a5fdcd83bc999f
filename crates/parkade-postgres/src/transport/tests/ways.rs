//! Which addresses are tried in which order, and where they come from.

use std::fmt::Write;

use super::*;
use Setback::{NoConnection, OtherTarget, Refused};

/// The attempts of a round, one after the other: `host:last byte of the address`, then `-` plain, `?` if offered, `+` TLS.
fn tried(text: &str, setbacks: &[Setback]) -> String {
    let settings = settings(text);
    let address = |byte| Address::Tcp(([127, 0, 0, byte], 1).into());
    let found: Vec<HostAddresses> = settings
        .hosts
        .iter()
        .map(|host| match &*host.name {
            "two" => Ok(vec![address(1), address(2)]),
            "none" => Err("no such host".into()),
            name if name.starts_with('/') => Ok(vec![Address::Unix(name.into())]),
            _ => Ok(vec![address(9)]),
        })
        .collect();
    let mut attempts = Attempts::new(&settings, &found);
    let mut tried = String::new();
    let mut next = attempts.first();
    let mut setbacks = setbacks.iter().copied();
    while let Some(attempt) = next {
        let byte = match attempt.address {
            Address::Tcp(address) => address.ip().to_string().split('.').next_back().unwrap().to_owned(),
            Address::Unix(_) => "unix".into(),
        };
        let tls = match attempt.tls {
            TlsUse::Never => '-',
            TlsUse::IfOffered => '?',
            TlsUse::Always => '+',
        };
        let _ = write!(tried, "{}:{byte}{tls} ", attempt.host);
        next = attempts.after(setbacks.next().unwrap_or(NoConnection));
    }
    tried.trim_end().to_owned()
}

#[test]
fn what_is_tried_next_depends_on_what_happened() {
    for (text, setbacks, order) in [
        ("host=two,one sslmode=disable", &[][..], "0:1- 0:2- 1:9-"),
        ("host=one,two sslmode=require", &[], "0:9+ 1:1+ 1:2+"),
        ("host=two sslmode=prefer", &[], "0:1? 0:1- 0:2? 0:2-"),
        ("host=two sslmode=allow", &[], "0:1- 0:1+ 0:2- 0:2+"),
        ("host=none,one sslmode=disable", &[], "1:9-"),
        ("host=none", &[], ""),
        ("host=/run/pg,one sslmode=prefer", &[], "0:unix- 1:9? 1:9-"),
        ("host=two,one sslmode=prefer", &[Refused], "0:1? 0:1-"),
        ("host=two,one sslmode=prefer", &[NoConnection, Refused], "0:1? 0:1-"),
        ("host=two,one sslmode=disable", &[Refused], "0:1-"),
        ("host=two,one sslmode=disable", &[NoConnection, Refused], "0:1- 0:2-"),
        ("host=two,one sslmode=prefer", &[OtherTarget], "0:1? 1:9? 1:9-"),
    ] {
        assert_eq!(tried(text, setbacks), order, "{text} {setbacks:?}");
    }
}

#[test]
fn a_balanced_load_tries_all_in_some_order() {
    let text = "host=two,one,one sslmode=disable load_balance_hosts=random";
    let orders: std::collections::HashSet<_> = (0..200).map(|_| tried(text, &[])).collect();
    assert!(orders.len() > 3);
    for order in orders {
        let mut each: Vec<_> = order.split(' ').collect();
        each.sort_unstable();
        assert_eq!(each, ["0:1-", "0:2-", "1:9-", "2:9-"]);
    }
}

#[test]
fn the_same_way_again_is_encrypted_as_the_connection_was() {
    let address = Address::Tcp(([127, 0, 0, 1], 5432).into());
    let first = attempt(&address, TlsUse::IfOffered, "db");
    assert_eq!(first.again(true), attempt(&address, TlsUse::Always, "db"));
    assert_eq!(first.again(false), attempt(&address, TlsUse::Never, "db"));
}

#[test]
fn addresses_and_sockets_need_no_name_server() {
    let found = known(&settings("host=127.0.0.1,::1,/run/pg port=7").hosts).unwrap();
    let addresses = [
        Address::Tcp("127.0.0.1:7".parse().unwrap()),
        Address::Tcp("[::1]:7".parse().unwrap()),
        Address::Unix("/run/pg/.s.PGSQL.7".into()),
    ];
    assert_eq!(found, addresses.map(|address| Ok(vec![address])));
    assert_eq!(
        known(&settings("host=db hostaddr=::1").hosts),
        Some(vec![Ok(vec!["[::1]:5432".parse().map(Address::Tcp).unwrap()])])
    );
    assert_eq!(known(&settings("host=127.0.0.1,db").hosts), None);
}

#[test]
fn a_resolver_wakes_with_its_answers() {
    let mut poll = Poll::new().unwrap();
    let mut events = Events::with_capacity(4);
    let mut resolver = Resolver::new(poll.registry(), Token(7)).unwrap();
    let mut answers = Vec::new();
    for asker in [1, 2] {
        resolver.ask(asker, &settings("host='localhost,no host,/run/pg' port=7").hosts).unwrap();
    }
    while answers.len() < 2 {
        poll.poll(&mut events, Some(PATIENCE)).unwrap();
        assert!(events.iter().all(|event| event.token() == Token(7)) && !events.is_empty());
        answers.extend(resolver.answers());
    }
    for (asker, (answered, found)) in [1, 2].into_iter().zip(answers) {
        assert_eq!(answered, asker);
        assert!(found[0].as_ref().is_ok_and(|addresses| !addresses.is_empty()), "{found:?}");
        assert!(found[1].as_ref().is_err_and(|why| why.starts_with("no host: ")), "{found:?}");
        assert_eq!(found[2], Ok(vec![Address::Unix("/run/pg/.s.PGSQL.7".into())]));
    }
}
