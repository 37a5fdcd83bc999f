//! What is kept, looked at, changed by people and forgotten; which jobs are the same.

use std::time::Duration;

use super::Case;
use crate::{PLAIN, Settings};

pub const CASES: &[Case] = &[
    (
        "of one name and key there is one that has not ended",
        PLAIN,
        "
        0 enqueue a key=k => a
        0 enqueue b key=k | enqueue c key=other | enqueue d key=k name=play => a | c | d
        1 claim 1 => a1 more
        1 enqueue b key=k => a
        2 end a1 retry 90 oops => goes-on due=90
        2 enqueue b key=k => a due=90
        90 claim 1 c=0 => c1 more
        91 claim 2 => d1 a2
        92 end a2 completed fine => completed fine
        93 enqueue b key=k => b
        93 count => ready=1 running=2 completed=1 oldest=93 default:1
        ",
    ),
    (
        "the request that enqueued it is known in each attempt, and afterwards",
        PLAIN,
        "
        0 enqueue a request=mine-1 trace=7 => a
        0 enqueue b => b
        0 recur r 7 c request=other => yes
        1 claim 9 => a1 request=mine-1 trace=7 b1 c1 request=other
        2 end a1 retry 3 oops => goes-on due=3
        2 find b => running work default attempt=1 enqueued=0 started=1
        3 claim 9 => a2 request=mine-1 trace=7
        4 end a2 completed fine => completed fine
        4 find a => completed work default attempt=2 enqueued=0 due=3 started=3 ended=4 result=fine error=oops request=mine-1 trace=7
        ",
    ),
    (
        "an unknown, a dead and a cancelled one: the first still has its key, the others not",
        PLAIN,
        "
        0 enqueue a key=k => a
        0 claim 1 => a1
        0 end a1 unknown => goes-on
        1 enqueue b key=k => a
        1 cancel a => yes
        1 enqueue b key=k => b
        2 retry a => no
        2 claim 1 => b1
        2 end b1 dead broken => dead broken
        3 retry a => yes
        3 retry b => no
        3 find b => dead work default attempt=1 key=k enqueued=1 started=2 ended=2 error=broken
        ",
    ),
    (
        "enqueued a second time it is the same job",
        PLAIN,
        "
        0 enqueue a due=50 | enqueue a due=50 => a due=50 | a due=50
        1 enqueue a priority=7 => a due=50
        60 claim 9 => a1
        60 enqueue a => a
        60 end a1 completed fine => completed fine
        60 enqueue a => a
        60 claim 9 => none
        60 count => completed=1
        ",
    ),
    (
        "cancelled is what waits, not what runs or has ended",
        PLAIN,
        "
        0 enqueue a | enqueue b due=9 | enqueue c => a | b due=9 | c
        1 claim 1 => a1 more next=9
        1 cancel a | cancel b | cancel c | cancel d => no | yes | yes | no
        2 cancel b => no
        2 find c => cancelled work default attempt=0 enqueued=0 ended=1
        9 claim 9 => none
        10 end a1 cancelled => cancelled
        10 count => cancelled=3
        11 retry b => yes
        11 claim 9 => b1
        ",
    ),
    (
        "retried is what has ended or is unknown, with its attempts counted anew",
        PLAIN,
        "
        0 enqueue a | enqueue b => a | b
        0 retry a => no
        0 claim 2 => a1 b1
        0 retry a => no
        1 end a1 completed fine | end b1 unknown => completed fine | goes-on
        2 retry a | retry b | retry c => yes | yes | no
        2 find a => ready work default attempt=0 enqueued=0
        3 claim 9 => a1 b1
        ",
    ),
    (
        "dropped is what does not run",
        PLAIN,
        "
        0 enqueue a | enqueue b key=k | enqueue c due=9 => a | b | c due=9
        0 claim 1 => a1 more next=9
        1 drop a | drop b | drop c | drop d => no | yes | yes | no
        2 end a1 dead broken => dead broken
        2 drop a => yes
        2 list => none
        2 count => none
        3 enqueue b key=k => b
        ",
    ),
    (
        "lists are newest first and hold what they are asked for",
        PLAIN,
        "
        0 enqueue a | enqueue b name=play queue=mail | enqueue c queue=mail | enqueue d due=9 => a | b | c | d due=9
        1 claim 1 => a1 more next=9
        1 list => d c b a
        1 list count=2 => d c
        1 list count=0 => none
        1 list queue=mail => c b
        1 list name=play => b
        1 list state=ready => c b
        1 list state=ready name=work => c
        1 list state=running => a
        1 list state=scheduled => d
        1 list state=dead => none
        2 end a1 completed fine | cancel b => completed fine | yes
        3 list state=completed | list state=cancelled | list state=unknown => a | b | none
        ",
    ),
    (
        "counts are those of all states, the oldest and the depth of queues",
        PLAIN,
        "
        0 count => none
        5 enqueue a priority=-9 | enqueue b priority=5 queue=mail | enqueue c due=90 => a | b | c due=90
        7 enqueue d | enqueue e | enqueue f | enqueue g | enqueue h => d | e | f | g | h
        8 claim 6 => b1 d1 e1 f1 g1 h1 more next=90
        9 end b1 completed x | end d1 dead x | end e1 cancelled | end f1 unknown => completed x | dead x | cancelled | goes-on
        9 count => scheduled=1 ready=1 running=2 completed=1 dead=1 cancelled=1 unknown=1 oldest=5 default:2
        ",
    ),
    (
        "an unknown one becomes ready when its function is known, and the attempt did not count",
        PLAIN,
        "
        0 enqueue a name=play | enqueue b name=sing | enqueue c name=play => a | b | c
        0 claim 9 => a1 b1 c1
        1 recognise play => no
        1 end a1 unknown | end b1 unknown | end c1 unknown => goes-on | goes-on | goes-on
        2 claim 9 => none
        2 recognise dance => no
        2 recognise dance play => yes
        2 recognise play => no
        2 find b => unknown sing default attempt=0 enqueued=0 started=0 ended=1
        3 claim 9 => a1 c1
        4 end a1 completed fine | end c1 completed fine => completed fine | completed fine
        4 count => completed=2 unknown=1
        ",
    ),
    (
        "a recurring job is enqueued once for each of its times",
        PLAIN,
        "
        0 schedules => none
        100 recur nightly 100 a => yes
        101 recur nightly 100 b | recur nightly 90 c | recur weekly 100 d => no | no | yes
        200 recur nightly 200 => yes
        200 schedules => nightly@200 weekly@100
        200 recur nightly 200 e => no
        300 recur nightly 300 f key=k | recur nightly 400 g key=k => yes | yes
        300 list => f d a
        300 claim 9 => a1 d1 f1
        ",
    ),
    (
        "what has completed or was cancelled is forgotten in time",
        Settings { keep_completed: Duration::from_millis(100), ..PLAIN },
        "
        0 enqueue a | enqueue b | enqueue c => a | b | c
        0 claim 2 => a1 b1 more
        10 end a1 completed fine => completed fine
        20 cancel c => yes
        50 end b1 completed fine => completed fine
        110 list => c b a
        111 schedules => none
        112 list => c b
        121 schedules => none
        122 list => b
        150 count => completed=1
        151 schedules => none
        152 count | list => none | none
        152 enqueue a => a
        ",
    ),
    (
        "no more than so many are kept, the newest",
        Settings { keep_completed_count_max: 2, ..PLAIN },
        "
        0 enqueue a | enqueue b | enqueue c | enqueue d => a | b | c | d
        0 claim 9 => a1 b1 c1 d1
        1 end a1 completed x | end b1 cancelled => completed x | cancelled
        2 end c1 completed x => completed x
        3 list => d c b
        4 end d1 dead x => dead x
        5 list => d c b
        ",
    ),
];
