//! Channels: who gets which message, and what is told of those that are lost. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::{ChannelName, ChannelNameError, Config, Cursor, Event, HistoryLimits, MessageId};
use script::{Script, check, check_with, config};

const READY: &str = "ready:1";

fn keeping(count: usize) -> Config {
    Config { history: HistoryLimits { count, ..HistoryLimits::default() }, ..config() }
}

#[test]
fn one_message_is_told_once_to_all_that_wait() {
    let three = "arrive:a:/next arrive:b:/next arrive:c:/stream publish:bids";
    check(&format!("{READY} {three}"), "feed:m1:c deliver:m1:a,b done:a done:b");
}

#[test]
fn a_stream_goes_on_and_a_wait_does_not() {
    check(&format!("{READY} arrive:a:/next arrive:c:/stream publish:bids publish:bids"), "feed:m2:c");
}

#[test]
fn what_was_missed_comes_at_once() {
    let published = format!("{READY} arrive:a publish:bids publish:bids");
    check(&format!("{published} park:a:next:bids@1.1:answer"), "deliver:m2:a done:a");
    check(&format!("{published} park:a:next:bids@1.0:answer"), "deliver:m1:a done:a");
    check(&format!("{published} park:a:next:bids@1.1:call"), "keep:a call:a:1:m2");
    check(&format!("{published} park:a:stream:bids@1.0:answer"), "open:a:1.0 feed:m1:a feed:m2:a");
}

#[test]
fn a_history_is_what_is_held_and_where_the_channel_stands() {
    let published = format!("{READY} arrive:a publish:bids publish:bids publish:bids");
    check(&format!("{published} park:a:history:bids:answer"), "hold1:1.3:m1,m2,m3 history1:a done:a drop:history1");
    check(&format!("{published} park:a:history:bids@2:answer"), "hold1:1.3:m2,m3 history1:a done:a drop:history1");
    check(&format!("{published} park:a:history:bids@0:answer"), "hold1:1.3: history1:a done:a drop:history1");
    check(&format!("{READY} arrive:a park:a:history:bids:answer"), "hold1:1.0: history1:a done:a drop:history1");
}

#[test]
fn a_history_is_kept_until_its_function_has_ended() {
    let parked = format!("{READY} arrive:a publish:bids park:a:history:bids:call");
    check(&parked, "keep:a hold1:1.1:m1 call:a:1:history1");
    check(&format!("{parked} publish:bids answer:a"), "relay:a done:a drop:history1");
    let awaited = "ready:1:concurrent:9 arrive:a:/async publish:bids park:a:history:bids:await";
    check(awaited, "hold1:1.1:m1 resume:1:history1:a drop:history1");
}

#[test]
fn a_history_for_a_worker_fits_into_a_frame_and_has_no_hole() {
    let mut script = Script::run(config(), &format!("{READY} arrive:a"));
    for number in 1..=40 {
        let channel = ChannelName::parse("bids").unwrap();
        script.tell(Event::Published { channel, message: MessageId(number), bytes: 25_000, by: None });
    }
    script.go_on("park:a:history:bids:answer");
    let fit: Vec<String> = (41 - (768 * 1024) / 25_000..=40).map(|number| format!("m{number}")).collect();
    assert_eq!(script.told.join(" "), format!("hold1:1.28:{} history1:a done:a drop:history1", fit.join(",")));
}

#[test]
fn whoever_publishes_may_ask_for_the_cursor_of_the_message() {
    let published = "ready:1:concurrent:9 arrive:a:/async publish:bids:a publish:bids publish:bids:a";
    check(&format!("{published} park:a:published:3:answer"), "published:a:1.3 done:a");
    check(&format!("{published} park:a:published:1:await"), "resume:1:published@1.1:a");
    check(&format!("{published} park:a:published:1:call"), "keep:a call:a:1:published@1.1");
    check(&format!("{published} park:a:published:2:answer"), "refuse:a:CursorUnknown done:a");
    let other = "arrive:b:/async park:b:published:1:answer";
    check(&format!("{published} {other}"), "refuse:b:CursorUnknown done:b");
    let many = "publish:bids:a ".repeat(64);
    check(&format!("{published} {many} park:a:published:3:await"), "resume:1:CursorUnknown:a");
    check(&format!("{published} {many} park:a:published:4:await"), "resume:1:published@1.4:a");
}

#[test]
fn without_a_cursor_a_wait_begins_now() {
    check(&format!("{READY} arrive:a publish:bids park:a:next:bids:answer"), "");
    check(&format!("{READY} arrive:a publish:bids park:a:next:bids@1.1:answer"), "");
    check(&format!("{READY} arrive:a publish:bids park:a:stream:bids:answer"), "open:a:1.1");
}

#[test]
fn what_is_no_longer_held_is_told_as_a_gap() {
    let lost = |events: &str, effects| {
        check_with(keeping(1), &format!("{READY} arrive:a publish:bids publish:bids {events}"), effects);
    };
    lost("park:a:next:bids@1.0:answer", "deliver:m2:a:gap done:a");
    lost("park:a:next:bids@1.1:answer", "deliver:m2:a done:a");
    lost("park:a:stream:bids@1.0:answer", "open:a:1.1:gap feed:m2:a");
}

#[test]
fn a_gap_is_told_with_the_next_message_when_nothing_is_held() {
    let lost =
        |events: &str, effects| check_with(keeping(0), &format!("{READY} arrive:a publish:bids {events}"), effects);
    lost("park:a:next:bids@1.0:answer publish:bids", "deliver:m2:a:gap done:a drop:m2");
    lost("park:a:next:bids@1.1:answer publish:bids", "deliver:m2:a done:a drop:m2");
    lost("park:a:stream:bids@1.0:answer", "open:a:1.1:gap");
}

#[test]
fn a_cursor_of_another_epoch_or_from_ahead_is_a_gap() {
    let published = format!("{READY} arrive:a publish:bids");
    check(&format!("{published} park:a:next:bids@7.1:answer"), "deliver:m1:a:gap done:a");
    check(&format!("{published} park:a:next:bids@1.2:answer"), "deliver:m1:a:gap done:a");
    check(&format!("{READY} arrive:a park:a:next:bids@7.1:answer publish:bids"), "deliver:m1:a:gap done:a");
}

#[test]
fn what_is_held_comes_from_the_beginning_without_a_gap() {
    check(&format!("{READY} arrive:a park:a:stream:bids@beginning:answer"), "open:a:1.0");
    check(&format!("{READY} arrive:a park:a:next:bids@beginning:answer publish:bids"), "deliver:m1:a done:a");
    let held = format!("{READY} publish:bids publish:bids publish:bids arrive:a");
    check_with(keeping(2), &format!("{held} park:a:next:bids@beginning:answer"), "deliver:m2:a done:a");
    check_with(keeping(2), &format!("{held} park:a:stream:bids@beginning:answer"), "open:a:1.1 feed:m2:a feed:m3:a");
}

#[test]
fn waiters_with_and_without_a_gap_are_told_apart() {
    let two = "arrive:a:/next arrive:b park:b:next:bids@7.1:answer publish:bids";
    check(&format!("{READY} {two}"), "deliver:m1:a deliver:m1:b:gap done:a done:b");
}

#[test]
fn a_message_lives_as_long_as_a_call_needs_it() {
    let called = format!("{READY} arrive:a park:a:next:bids:call publish:bids");
    check_with(keeping(0), &called, "call:a:1:m1");
    check_with(keeping(0), &format!("{called} answer:a"), "relay:a done:a drop:m1");
    check_with(keeping(0), &format!("{called} left:a"), "recall:a:1:ClientLeft cancelled:a:ClientLeft drop:m1");
    check_with(keeping(1), &format!("{called} answer:a"), "relay:a done:a");
}

#[test]
fn history_is_bounded_by_count_bytes_and_age() {
    check_with(keeping(2), &format!("{READY} publish:bids publish:bids publish:bids"), "drop:m1");
    let bytes = Config { history: HistoryLimits { bytes: 250, ..HistoryLimits::default() }, ..config() };
    check_with(bytes, &format!("{READY} publish:bids publish:bids publish:bids"), "drop:m1");
    let age =
        Config { history: HistoryLimits { age: Duration::from_secs(20), ..HistoryLimits::default() }, ..config() };
    check_with(age.clone(), &format!("{READY} publish:bids wait:10s publish:bids wait:10s"), "drop:m1");
    check_with(age, &format!("{READY} publish:bids wait:20s wait:5s"), "");
}

#[test]
fn all_histories_together_are_bounded_and_the_oldest_goes() {
    let config = Config { history_bytes_max: 250, ..config() };
    check_with(config, &format!("{READY} publish:a publish:b publish:c"), "drop:m1");
}

#[test]
fn an_idle_channel_keeps_its_epoch_for_a_while() {
    let epoch = |away: &str| {
        let mut script = Script::run(config(), &format!("{READY} arrive:a:/next wait:5s {away} arrive:b:/stream"));
        script.told.pop().unwrap()
    };
    assert_eq!(epoch("wait:50s"), "open:b:1.0");
    assert_eq!(epoch("wait:70s"), "open:b:2.0");
}

#[test]
fn the_longest_pattern_rules_a_channel() {
    let mut script = Script::run(config(), READY);
    for (pattern, count) in [("*", 1), ("news/*", 2), ("news/1", 3)] {
        let limits = HistoryLimits { count, ..HistoryLimits::default() };
        script.tell(Event::ChannelConfigured { pattern: pattern.into(), limits });
    }
    for channel in ["other", "news/2", "news/1"] {
        script.go_on(&format!("publish:{channel} ").repeat(5));
    }
    let kept = script
        .core
        .status(script.now)
        .channels
        .into_iter()
        .map(|channel| (channel.name.to_string(), channel.history_count));
    let mut kept: Vec<_> = kept.collect();
    kept.sort();
    assert_eq!(kept, [("news/1".into(), 3), ("news/2".into(), 2), ("other".into(), 1)]);
}

#[test]
fn a_rule_that_comes_later_holds_for_what_is_there() {
    let mut script = Script::run(config(), &format!("{READY} publish:bids publish:bids"));
    script.told.clear();
    let limits = HistoryLimits { count: 0, ..HistoryLimits::default() };
    script.tell(Event::ChannelConfigured { pattern: "bids".into(), limits });
    assert_eq!(script.told, ["drop:m1", "drop:m2"]);
}

#[test]
fn a_name_has_1_to_200_bytes_and_no_control_character() {
    let parse = |raw: &str| ChannelName::parse(raw).map(|name| name.to_string());
    assert_eq!(parse("auction/7"), Ok("auction/7".into()));
    assert_eq!(parse(&"x".repeat(200)).map(|name| name.len()), Ok(200));
    assert_eq!(parse(&"x".repeat(201)), Err(ChannelNameError::TooLong));
    assert_eq!(parse(""), Err(ChannelNameError::Empty));
    for control in ["a\nb", "a\0", "\u{7f}", "\u{85}"] {
        assert_eq!(parse(control), Err(ChannelNameError::Control));
    }
}

#[test]
fn a_cursor_is_two_hexadecimal_numbers() {
    let cursor = Cursor { epoch: 0x19a, sequence: 255 };
    assert_eq!((cursor.to_string(), "19a.ff".parse()), ("19a.ff".into(), Ok(cursor)));
    assert_eq!("0.0".parse(), Ok(Cursor { epoch: 0, sequence: 0 }));
    for wrong in ["", ".", "1", "1.", ".1", "1.g", "1.A", "+1.2", "1.-2", "1.2.3", " 1.2", "10000000000000000.1"] {
        assert!(wrong.parse::<Cursor>().is_err(), "{wrong:?}");
    }
}

#[test]
fn when_messages_were_lost_who_waits_is_told_of_a_gap_with_the_next_one() {
    check(&format!("{READY} arrive:a:/next lost:bids"), "");
    check(&format!("{READY} arrive:a:/next lost:bids publish:bids"), "deliver:m1:a:gap done:a");
    check(&format!("{READY} arrive:a:/next lost:bids arrive:b:/next publish:bids"), {
        "deliver:m1:b deliver:m1:a:gap done:a done:b"
    });
    check(&format!("{READY} arrive:a park:a:next:bids:call lost:bids publish:bids"), "call:a:1:m1+gap");
    check(&format!("{READY} arrive:a:/next lost:other publish:bids"), "deliver:m1:a done:a");
}

#[test]
fn when_messages_were_lost_streams_are_told_at_once_and_go_on() {
    let stream = format!("{READY} arrive:c:/stream publish:bids");
    check(&format!("{stream} lost:bids"), "gap:2.0:c drop:m1");
    check(&format!("{stream} lost:bids publish:bids"), "feed:m2:c");
    check(&format!("{stream} lost:other"), "");
}

#[test]
fn when_messages_were_lost_nothing_from_before_counts() {
    let lost = format!("{READY} arrive:a publish:bids lost:bids");
    check(&lost, "drop:m1");
    for cursor in ["1.0", "1.1"] {
        check(&format!("{lost} park:a:next:bids@{cursor}:answer"), "");
        check(&format!("{lost} park:a:next:bids@{cursor}:answer publish:bids"), "deliver:m2:a:gap done:a");
        check(&format!("{lost} park:a:stream:bids@{cursor}:answer"), "open:a:2.0:gap");
    }
    check(&format!("{lost} park:a:next:bids@2.0:answer publish:bids"), "deliver:m2:a done:a");
    check(&format!("{READY} lost:bids arrive:a:/stream"), "open:a:1.0");
}
