//! Tables of before, in PostgreSQL.

use super::in_postgres::alone;
use super::session::{Session, address, drop_schema};
use super::sharing::{Bounds, PAIR, QUEUE, RATED, Server, names};
use super::words::id;

#[test]
#[ignore = "needs a database"]
fn tables_of_version_1_are_brought_up_to_date_with_jobs_in_them() {
    let _alone = alone();
    drop_schema();
    let mut session = Session::new();
    session.run(include_str!("schema_1.sql"));
    let of_another = "INSERT INTO parkade.boots (boot, seen) VALUES ('00000000-0000-0000-0000-000000000009', now())";
    session.run(of_another);
    for (number, name) in (0..).zip(["old", "older", "new", "newer", "later"]) {
        session.run(&format!(
            "INSERT INTO parkade.bodies (id, name, queue, priority, arguments, enqueued)
             VALUES ('{}', 'work', '{QUEUE}', 0, convert_to('of {name}', 'UTF8'), {number})",
            id(name)
        ));
    }
    let place = "id, seq, queue, rank, priority, size, attempt";
    let of = "SELECT id, seq, queue, enqueued, 0, 9, 1 FROM parkade.bodies WHERE id = ";
    let begin = |name: &str| {
        let claimed = "0, '00000000-0000-0000-0000-000000000009', 1";
        format!(
            "INSERT INTO parkade.running ({place}, started, boot, claim) {} '{}'",
            of.replace(" FROM", &format!(", {claimed} FROM")),
            id(name)
        )
    };
    session.run(&begin("old"));
    for name in ["new", "newer", "later"] {
        session.run(&format!("INSERT INTO parkade.ready ({place}) {} '{}'", of.replace("9, 1", "9, 0"), id(name)));
    }
    session.run(
        "DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'conformance_clerk') THEN CREATE ROLE conformance_clerk LOGIN; END IF;
            GRANT USAGE ON SCHEMA parkade TO conformance_clerk;
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA parkade TO conformance_clerk;
            -- Whoever is about to bring them up to date is not their owner, and keeps what it makes to itself.
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'conformance_owner') THEN CREATE ROLE conformance_owner; END IF;
            ALTER TABLE parkade.running OWNER TO conformance_owner;
            ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
        END $$",
    );

    let mut server = Server::another();
    assert_eq!(session.run("SELECT version FROM parkade.version"), r#"[{"version":3}]"#);
    session.run("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC");
    let owner = "SELECT relowner::regrole::text AS owner FROM pg_class WHERE oid = 'parkade.rates'::regclass";
    assert_eq!(session.run(owner), r#"[{"owner":"conformance_owner"}]"#);
    assert_eq!(server.claim(9, PAIR), "new1", "the old one has the other place");
    // The server of before goes on beside it, and knows of no bounds that are not its own.
    session.run(&begin("older"));
    assert_eq!(server.end(10, "new"), "completed done");
    assert_eq!(server.claim(11, PAIR), "none");
    session.run("DELETE FROM parkade.running");
    assert_eq!(server.claim(12, PAIR), "newer1 later1");

    // A program stores one by itself.
    let stored = format!(
        "SELECT parkade.enqueue(NULL, '{}', 'work', '{QUEUE}', 0::int2, NULL, 'of fresh', NULL, NULL) AS is_stored",
        id("fresh")
    );
    assert_eq!(session.run(&stored), r#"[{"is_stored":true}]"#);
    assert_eq!(session.run(&stored), r#"[{"is_stored":false}]"#, "it is there already");
    session.run("DELETE FROM parkade.running");
    server.running.clear();
    assert_eq!(server.claim(12, PAIR), "fresh1");

    // Who was granted what claiming takes may go on, too.
    server.running.clear();
    let mut clerk = address();
    clerk.user = "conformance_clerk".into();
    let mut clerk = Server::at(clerk);
    clerk.enqueue(13, QUEUE, names('m', 3));
    session.run("DELETE FROM parkade.running");
    assert_eq!(clerk.claim(14, Bounds { concurrency: Some(2), ..RATED }), "m000x1 m001x1 next=114");
    drop(clerk);
    session.run("DO $$ BEGIN DROP OWNED BY conformance_clerk, conformance_owner CASCADE; DROP ROLE conformance_clerk, conformance_owner; END $$");
}
