//! Texts and environments, and what they mean.

use std::fmt::Write;

use super::*;

/// The environment in these tests. There is no home folder, so that no file of this machine has an effect.
const ACCOUNT: &[(&str, &str)] = &[("USER", "kim"), ("HOME", "/nonexistent")];

fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let find = |name: &str| variables.iter().chain(ACCOUNT).find(|(known, _)| *known == name);
    Settings::parse(text, &|name| find(name).map(|(_, value)| (*value).to_owned()))
}

/// `user:password@host[address]… database`, and everything else that is not the default.
fn shown(settings: &Settings) -> String {
    let mut text = settings.user.clone();
    if let Some(password) = &settings.password {
        let _ = write!(text, ":{}", password.reveal());
    }
    for host in &settings.hosts {
        let _ = match &host.place {
            HostPlace::Address(address) if *address.to_string() != *host.name => {
                write!(text, " {}={address}", host.shown())
            }
            HostPlace::Unix(_) | HostPlace::Address(_) | HostPlace::Name => write!(text, " {}", host.shown()),
        };
    }
    let _ = write!(text, " /{}", settings.database);
    text
}

fn check(text: &str, means: &str) {
    match parse(text, &[]) {
        Ok(settings) => assert_eq!(shown(&settings), means, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn check_refused(text: &str, error: &str) {
    match parse(text, &[]) {
        Ok(settings) => panic!("{text} means {}", shown(&settings)),
        Err(refused) => assert!(refused.to_string().contains(error), "{text}: {refused}"),
    }
}

const USUAL: &str = "/var/run/postgresql/.s.PGSQL.5432 /tmp/.s.PGSQL.5432 localhost:5432";

#[test]
fn an_address_means_what_libpq_takes_it_for() {
    for (text, means) in [
        ("postgres://", format!("kim {USUAL} /kim")),
        ("postgresql://db", "kim db:5432 /kim".into()),
        ("postgres://lee@db", "lee db:5432 /lee".into()),
        ("postgres://lee:pw@db:6000/shop", "lee:pw db:6000 /shop".into()),
        ("postgres://lee:p%40ss%3A%2F%25@db/shop", "lee:p@ss:/% db:5432 /shop".into()),
        ("postgres://lee:a:b?c#d@db/shop", "lee:a:b?c#d db:5432 /shop".into()),
        ("postgres://[::1]:6000/shop", "kim [::1]:6000 /shop".into()),
        ("postgres://[2001:db8::1]/shop", "kim [2001:db8::1]:5432 /shop".into()),
        ("postgres://a:1,b:2,[::1]/shop", "kim a:1 b:2 [::1]:5432 /shop".into()),
        ("postgres://a,b/shop?port=7", "kim a:7 b:7 /shop".into()),
        ("postgres://%2Frun%2Fpostgresql/shop", "kim /run/postgresql/.s.PGSQL.5432 /shop".into()),
        ("postgres:///shop?host=/run/postgresql&port=6", "kim /run/postgresql/.s.PGSQL.6 /shop".into()),
        ("postgres:///shop?host=db&hostaddr=10.0.0.1", "kim db:5432=10.0.0.1 /shop".into()),
        (
            "postgres:///a%20b?user=me%40here",
            "me@here /var/run/postgresql/.s.PGSQL.5432 /tmp/.s.PGSQL.5432 localhost:5432 /a b".into(),
        ),
        ("postgres://lee@db/shop?user=ann&password=x", "ann:x db:5432 /shop".into()),
        ("postgres://:pw@db", "kim:pw db:5432 /kim".into()),
    ] {
        check(text, &means);
    }
}

#[test]
fn keys_with_values_mean_what_libpq_takes_them_for() {
    for (text, means) in [
        ("", format!("kim {USUAL} /kim")),
        ("host=db dbname=shop user=lee password=pw port=6", "lee:pw db:6 /shop".into()),
        ("  host = db\tdbname = 'the shop'\nuser=lee", "lee db:5432 /the shop".into()),
        (r"host=db password='it\'s \\ =' user=a\ b", r"a b:it's \ = db:5432 /a b".into()),
        ("host=db dbname='' password=''", "kim db:5432 /kim".into()),
        ("host=a,b,/run/pg port=1,,3", "kim a:1 b:5432 /run/pg/.s.PGSQL.3 /kim".into()),
        ("hostaddr=10.0.0.1,::1", "kim 10.0.0.1:5432 [::1]:5432 /kim".into()),
        ("host=db host=other", "kim other:5432 /kim".into()),
        ("host=db keepalives=1 keepalives_idle=10 gssencmode=prefer krbsrvname=x", "kim db:5432 /kim".into()),
    ] {
        check(text, &means);
    }
}

#[test]
fn what_cannot_be_used_says_what_to_write() {
    for (text, error) in [
        ("mysql://lee:pw@db/shop", "write postgres://user@host"),
        ("mysql://lee:pw@db/shop?a=b", "write postgres://user@host"),
        ("shop", "write postgres://user@host"),
        ("postgres://lee:p@ss@db/shop", "write @ as %40"),
        ("postgres://lee:p/ss@db/shop", "write @ as %40"),
        ("postgres://lee:12/ss@db/shop", "write @ as %40"),
        ("postgres://lee:100%@db/shop", "write a percent sign as %25"),
        ("postgres://lee:%ff@db/shop", "write a percent sign as %25"),
        ("postgres://lee:a%00b@db/shop", "must not contain NUL"),
        ("postgres://[::1/shop", "needs its ]"),
        ("postgres://[::1]x/shop", "needs its ]"),
        ("postgres://db:port/shop", "`port`: write a number between 1 and 65535"),
        ("postgres://db:0/shop", "`port`: write a number"),
        ("postgres://db:65536/shop", "`port`: write a number"),
        ("postgres://a,b/shop?port=1,2,3", "`port`: write a number"),
        ("postgres://db/shop?sslmod=require", "unknown setting `sslmod`: did you mean `sslmode`?"),
        ("postgres://db/shop?zzz=1", "setting number 3 is unknown; the known ones are host"),
        ("postgres://db/shop?sslmode", "write postgres://user@host"),
        ("password='open", "a quote is not closed"),
        ("host=db sslmode=on", "`sslmode`: write disable or allow or prefer"),
        ("host=db sslmode=verify-full", "`sslrootcert`: name a file"),
        ("host=db sslmode=require sslrootcert=system", "`sslmode`: write verify-full"),
        ("host=db sslcert=/c.pem", "`sslkey`: name the file"),
        ("host=db sslnegotiation=direct", "`sslnegotiation`: write postgres"),
        ("host=db channel_binding=require", "`channel_binding`: write prefer"),
        ("host=db gssencmode=require", "`gssencmode`: write disable"),
        ("host=db client_encoding=LATIN1", "`client_encoding`: write UTF8"),
        ("host=db target_session_attrs=slave", "`target_session_attrs`: write any or read-write"),
        ("host=db connect_timeout=soon", "`connect_timeout`: write whole seconds"),
        ("host=db hostaddr=db2", "`hostaddr`: write addresses"),
        ("host=a,b hostaddr=::1", "`hostaddr`: write as many"),
        ("host=@abstract", "`host`: it must not contain @"),
        ("service=shop", "`service`: service files are not read"),
        ("host=db sslcrl=/crl", "`sslcrl`: certificate revocation lists"),
        ("host=db replication=database", "`replication`: connections for"),
    ] {
        check_refused(text, error);
    }
    let long = format!("host=/{}", "x".repeat(100));
    check_refused(&long, "`host`: a socket path has at most 107 bytes");
}

#[test]
fn the_environment_has_the_defaults() {
    let variables = [
        ("PGHOST", "db"),
        ("PGPORT", "6"),
        ("PGUSER", "lee"),
        ("PGPASSWORD", "pw"),
        ("PGDATABASE", "shop"),
        ("PGOPTIONS", "-c a=b"),
        ("PGAPPNAME", "till"),
        ("PGCONNECT_TIMEOUT", "1"),
        ("PGTARGETSESSIONATTRS", "read-write"),
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", "/roots.pem"),
        ("PGSSLCERT", "/own.pem"),
        ("PGSSLKEY", "/own.key"),
        ("PGLOADBALANCEHOSTS", "random"),
    ];
    let settings = parse("", &variables).unwrap();
    assert_eq!(shown(&settings), "lee:pw db:6 /shop");
    assert_eq!(settings.options.as_deref(), Some("-c a=b"));
    assert_eq!(settings.application_name.as_deref(), Some("till"));
    assert_eq!(settings.connect_timeout, Some(Duration::from_secs(2)));
    assert_eq!(settings.target, Target::ReadWrite);
    assert!(settings.is_load_balanced);
    let identity = Some(Identity { certificate: "/own.pem".into(), key: "/own.key".into() });
    let (mode, roots) = (TlsMode::VerifyFull, Roots::File("/roots.pem".into()));
    let tls = TlsSettings { mode, roots, identity, sends_name: true, version: TlsVersion::Tls12 };
    assert_eq!(settings.tls, tls);

    let settings = parse("postgres://ann:other@db2/stock", &variables).unwrap();
    assert_eq!(shown(&settings), "ann:other db2:6 /stock");
    let settings = parse("host='' sslmode='' dbname=''", &variables[..5]).unwrap();
    assert_eq!(shown(&settings).replace(":6", ":5432").replace("QL.6", "QL.5432"), format!("lee:pw {USUAL} /lee"));
    assert!(parse("", &[("PGSERVICE", "shop")]).is_err());
    assert!(parse("", &[("PGSERVICE", "")]).is_ok());
}

#[test]
fn tls_has_libpqs_defaults() {
    for (text, mode, roots) in [
        ("host=db", TlsMode::Prefer, Roots::None),
        ("host=db sslrootcert=system", TlsMode::VerifyFull, Roots::System),
        ("host=db sslrootcert=/r", TlsMode::Prefer, Roots::File("/r".into())),
        ("host=db sslmode=verify-ca sslrootcert=/r", TlsMode::VerifyCa, Roots::File("/r".into())),
        ("postgres://db?ssl=true", TlsMode::Require, Roots::None),
    ] {
        let settings = parse(text, &[]).unwrap();
        assert_eq!((settings.tls.mode, settings.tls.roots), (mode, roots), "{text}");
    }
}

#[test]
fn no_text_has_the_password() {
    const WORD: &str = "hunter";
    for text in [
        "postgres://lee:hunter@db/shop",
        "postgres://lee:x@hunter@db/shop",
        "postgres://lee:x/hunter@db/shop",
        "postgres://lee:1/hunter?x=y@db/shop",
        "postgres://lee:1/x?hunter=y@db/shop",
        "postgres://lee:hunter/x@db/shop",
        "postgres://lee:hunter@db:x/shop",
        "postgres://lee:hunter%@db/shop",
        "postgres://lee:hunter@db/shop?sslmode=hunter",
        "mysql://lee:hunter@db/shop",
        "host=db password=hunter",
        "host=db password=x hunter",
        "host=db password=x hunter=y",
        "host=db password='hunter",
        "host=db password=hunter passwort=hunter",
        "host=db password=hunter sslpassword=hunter",
    ] {
        let (debug, told) = match parse(text, &[]) {
            Ok(settings) => (format!("{settings:?}"), settings.name()),
            Err(error) => (format!("{error:?}"), error.to_string()),
        };
        assert!(!debug.contains(WORD) && !told.contains(WORD), "{text}: {told}; {debug}");
    }
    let secret = Secret::new(WORD);
    assert_eq!((format!("{secret:?}"), secret.to_string()), ("…".into(), "…".into()));
}

#[test]
fn a_name_is_database_and_hosts() {
    for (text, name) in [
        ("postgres://lee:pw@db.example/shop", "shop at db.example:5432"),
        ("postgres://lee:pw@a,[::1]:6/shop", "shop at a:5432, [::1]:6"),
        ("postgres:///shop?host=/run/pg", "shop at /run/pg/.s.PGSQL.5432"),
    ] {
        assert_eq!(parse(text, &[]).unwrap().name(), name);
    }
}

#[test]
fn a_password_comes_from_the_file_unless_one_was_given() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("parkade-settings-{}", std::process::id()));
    std::fs::write(&path, "a:*:*:*:first\nb:*:*:*:second\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let passfile = path.to_str().unwrap();
    let settings = parse("host=a,b,c", &[("PGPASSFILE", passfile)]).unwrap();
    let found: Vec<_> = settings.hosts.iter().map(|host| settings.password_for(host).map(Secret::reveal)).collect();
    assert_eq!(found, [Some("first"), Some("second"), None]);
    let settings = parse("host=a password=given", &[("PGPASSFILE", passfile)]).unwrap();
    assert_eq!(settings.password_for(&settings.hosts[0]).map(Secret::reveal), Some("given"));
    std::fs::remove_file(&path).unwrap();
}
