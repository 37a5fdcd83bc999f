//! What becomes of a request whose message could not be published, and which channels make room. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::{Duration, Instant};

use parkade_core::{ChannelName, Config, Core, Effect, Event, MessageId, Moment};
use script::{check_with, of_jobs, quiet as config};

/// Two channels, and somebody waits on each: there is no third.
const FULL: &str =
    "ready:1:concurrent:9 arrive:x park:x:next:one:answer arrive:y park:y:next:two:answer arrive:a:/async";

fn check(events: &str, effects: &str) {
    check_with(Config { channels_count_max: 2, ..config() }, events, effects);
}

#[test]
fn an_answer_does_not_say_that_a_message_was_published_that_was_not() {
    let refused = format!("{FULL} publish:three:a");
    check(&refused, "unpublished:m1 drop:m1");
    check(&format!("{refused} answer:a"), "refuse:a:NotPublished done:a");
    check(&format!("{refused} begin:a"), "refuse:a:NotPublished recall:a:1:ClientLeft done:a");
    check(&format!("{refused} error:a"), "refuse:a:ApplicationFailed done:a");
    check(&format!("{refused} left:x publish:three:a answer:a"), "refuse:a:NotPublished done:a");
    check(&format!("{FULL} publish:one:a answer:a"), "relay:a done:a");
    check(&format!("{FULL} publishnothing:a answer:a"), "refuse:a:BadAnswer done:a");
}

#[test]
fn an_answer_that_has_begun_is_broken_off() {
    check(&format!("{FULL} begin:a publish:three:a end:a"), "abort:a done:a");
    check(&format!("{FULL} begin:a publish:one:a end:a"), "end:a done:a");
}

#[test]
fn a_wait_does_not_hide_a_message_that_was_not_published() {
    let refused = format!("{FULL} publish:three:a");
    check(&format!("{refused} park:a:timer:1s:answer"), "refuse:a:NotPublished done:a");
    check(&format!("{refused} park:a:next:one:answer"), "refuse:a:NotPublished done:a");
    check(&format!("{refused} park:a:timer:1s:call"), "refuse:a:NotPublished done:a");
    check(&format!("{refused} park:a:timer:1s:await"), "");
    check(&format!("{refused} park:a:timer:1s:await wait:1s answer:a"), "refuse:a:NotPublished done:a");
    check(&format!("{FULL} park:a:timer:1s:await publish:three:a wait:1s answer:a"), "refuse:a:NotPublished done:a");
    check(&format!("{refused} enqueue:a answer:a"), "keep:a");
    check(&format!("{refused} enqueue:a answer:a stored:a"), "refuse:a:NotPublished done:a");
    check(&format!("{refused} enqueue:a stored:a park:a:stored:all:await answer:a"), "refuse:a:NotPublished done:a");
}

#[test]
fn whoever_asks_is_told_that_its_message_was_not_published() {
    let refused = format!("{FULL} publish:three:a");
    check(&format!("{refused} park:a:published:1:await"), "resume:1:NotPublished:a");
    check(&format!("{refused} park:a:published:1:await answer:a"), "relay:a done:a");
    check(&format!("{refused} park:a:published:1:answer"), "refuse:a:NotPublished done:a");
    let twice = format!("{refused} publish:three:a park:a:published:2:await");
    check(&twice, "resume:1:NotPublished:a");
    check(&format!("{twice} answer:a"), "refuse:a:NotPublished done:a");
    check(&format!("{twice} park:a:published:1:await answer:a"), "relay:a done:a");
}

#[test]
fn a_message_is_held_against_nobody_who_did_not_publish_it() {
    check(&format!("{FULL} publish:three answer:a"), "relay:a done:a");
    check(&format!("{FULL} arrive:b:/async publish:three:b answer:a"), "relay:a done:a");
    check(&format!("{FULL} publish:three:x left:x arrive:b:/async park:b:next:one:answer"), "");
    check(&format!("{FULL} publish:three:a left:a arrive:b:/async answer:b"), "relay:b done:b");
}

#[test]
fn a_job_whose_message_is_not_published_is_tried_again() {
    let run = format!("{FULL} jobs claimed:j+async publish:three:j");
    let check = |events: &str, effects: &str| {
        check_with(Config { channels_count_max: 2, ..of_jobs(1) }, events, effects);
    };
    check(&format!("{run} return:j"), "verdict:j:retry:Refused(NotPublished) done:j");
    check(&format!("{run} park:j:timer:1s:call"), "verdict:j:retry:Refused(NotPublished) done:j");
}

#[test]
fn the_channel_that_has_been_silent_longest_makes_room() {
    // Nobody waits: a made-up name pushes out what was published first.
    check("publish:one publish:two publish:three", "drop:m1");
    check("publish:one publish:two publish:one publish:three", "drop:m2");
    check("publish:one publish:two publish:three publish:one", "drop:m2");
    // Who comes back to it is told.
    check(
        "ready:1 arrive:a publish:bids publish:two publish:three park:a:next:bids@1.1:answer publish:bids",
        "deliver:m4:a:gap done:a",
    );
}

#[test]
fn a_channel_on_which_somebody_waits_makes_no_room() {
    let waits = "ready:1:concurrent:9 publish:one arrive:x park:x:next:one:answer publish:two";
    check(&format!("{waits} publish:three"), "drop:m2");
    check(&format!("{waits} publish:three publish:four"), "drop:m3");
    // As soon as nobody does it goes by the age of its last message again.
    check(&format!("{waits} left:x publish:three"), "drop:m1");
    check("publish:one publish:two publish:three arrive:x", "");
}

#[test]
fn an_idle_channel_makes_room_before_one_that_holds_messages() {
    check("ready:1:concurrent:9 publish:two arrive:x park:x:next:one:answer left:x publish:three", "");
}

/// A publish that has to make room costs about as much among many channels as among few.
#[test]
fn room_is_made_without_looking_at_all_channels() {
    let publishes = |channels: usize| {
        let mut core = Core::new(Config { channels_count_max: channels, ..config() });
        let mut effects: Vec<Effect> = Vec::new();
        let mut publish = |core: &mut Core, nth: usize| {
            let channel = ChannelName::parse(&format!("c{nth}")).unwrap();
            let event = Event::Published { channel, message: MessageId(nth as u64), bytes: 1, by: None };
            core.handle(Moment::default(), event, &mut effects);
            effects.clear();
        };
        (0..channels).for_each(|nth| publish(&mut core, nth));
        let fastest = (0..20).map(|round| {
            let began = Instant::now();
            (0..1_000).for_each(|nth| publish(&mut core, channels * (round + 1) + nth));
            began.elapsed()
        });
        fastest.min().unwrap().max(Duration::from_micros(1))
    };
    let (few, many) = (publishes(1_000), publishes(100_000));
    // A scan would cost a hundred times as much.
    assert!(many < 20 * few, "{many:?} among 100,000 channels, {few:?} among 1,000");
}
