//! How attempts end, and what becomes of their jobs.

use std::time::Duration;

use super::Case;
use crate::{PLAIN, Settings};

pub const CASES: &[Case] = &[
    (
        "a result is kept with its job",
        PLAIN,
        "
        0 enqueue a priority=3 key=k => a
        1 claim 1 => a1
        1 find a => running work default attempt=1 priority=3 key=k enqueued=0 started=1
        2 end a1 completed fine => completed fine
        3 find a => completed work default attempt=1 priority=3 key=k enqueued=0 started=1 ended=2 result=fine
        3 end a1 completed again => stale
        3 find b => none
        ",
    ),
    (
        "a failed attempt is tried again at its time, the last error is kept",
        PLAIN,
        "
        0 enqueue a => a
        1 claim 1 => a1
        2 end a1 retry 100 oops => goes-on due=100
        3 find a => scheduled work default attempt=1 enqueued=0 due=100 started=1 error=oops
        99 claim 1 => next=100
        100 claim 1 => a2
        101 end a2 retry 50 again => goes-on due=50
        101 claim 1 => a3
        102 end a3 completed fine => completed fine
        103 find a => completed work default attempt=3 enqueued=0 due=50 started=101 ended=102 result=fine error=again
        ",
    ),
    (
        "a dead one stays until somebody retries or drops it",
        Settings { keep_completed: Duration::from_millis(10), ..PLAIN },
        "
        0 enqueue a => a
        1 claim 1 => a1
        2 end a1 dead broken => dead broken
        9999999 count => dead=1
        9999999 find a => dead work default attempt=1 enqueued=0 started=1 ended=2 error=broken
        9999999 retry a => yes
        9999999 find a => ready work default attempt=0 enqueued=0
        9999999 retry a => no
        9999999 claim 1 => a1
        ",
    ),
    (
        "one that is handed back goes where it was, and the attempt does not count",
        PLAIN,
        "
        0 enqueue a => a
        1 enqueue b => b
        2 claim 1 => a1 more
        3 end a1 handed-back => goes-on
        4 claim 2 => a1 b1
        5 end a1 retry 5 oops => goes-on due=5
        6 claim 1 => a2
        7 end a2 handed-back => goes-on
        8 claim 1 => a2
        ",
    ),
    (
        "an attempt that is not the present one changes nothing",
        PLAIN,
        "
        0 enqueue a => a
        0 end a1 completed early => stale
        1 claim 1 => a1
        1 end a0 completed early => stale
        1 end b1 completed nobody => stale
        2 end a1 retry 2 oops => goes-on due=2
        2 end a1 completed late => stale
        3 claim 1 => a2
        4 end a1 completed late => stale
        4 end a2 completed fine => completed fine
        4 end a2 dead late => stale
        4 count => completed=1
        ",
    ),
    (
        "an outcome ends what its claim took, and not what the next one has, which may be the same attempt",
        PLAIN,
        "
        0 enqueue a => a
        1 claim 1 => a1
        2 end a1 handed-back => goes-on
        3 claim 1 => a1
        4 end a1#1 handed-back => stale
        4 end-again a1#1 handed-back => goes-on
        4 end a1#1 completed late => stale
        4 list state=running => a
        5 end a1 unknown => goes-on
        6 recognise work => yes
        6 claim 1 => a1
        7 end-again a1#2 unknown => goes-on
        7 list state=running => a
        8 end a1#3 completed fine => completed fine
        ",
    ),
    (
        "an outcome that is said again is answered as it was the first time, and changes nothing",
        PLAIN,
        "
        0 enqueue a => a
        1 claim 1 => a1
        2 end-again a1 retry 100 oops => goes-on due=100
        3 end-again a1 retry 100 oops => goes-on due=100
        3 end a1 retry 100 oops => stale
        3 end-again a1 cancelled => stale
        4 find a => scheduled work default attempt=1 enqueued=0 due=100 started=1 error=oops
        100 claim 1 => a2
        101 end-again a1 retry 100 oops => goes-on due=100
        102 end a2 completed fine => completed fine
        103 end-again a2 completed fine => completed fine
        104 find a => completed work default attempt=2 enqueued=0 due=100 started=100 ended=102 result=fine error=oops
        104 drop a => yes
        105 end-again a2 completed fine => completed fine
        106 enqueue b | enqueue c => b | c
        106 claim 2 => b1 c1
        107 end b1 cancelled | end c1 dead broken => cancelled | dead broken
        108 end-again b1 cancelled | end-again c1 dead broken => cancelled | dead broken
        109 end-again d1 completed fine => stale
        ",
    ),
    (
        "jobs that ran when the server went are ready again, where they were, and their attempt counts",
        PLAIN,
        "
        0 enqueue a => a
        1 enqueue b => b
        2 claim 1 => a1 more
        reopen
        3 count => ready=2 oldest=0 default:2
        4 claim 2 => a2 b1
        5 end a1 completed late => stale
        5 end a2 completed fine => completed fine
        ",
    ),
    (
        "what had ended when the server went is not counted as an attempt again",
        PLAIN,
        "
        0 enqueue a | enqueue b | enqueue c | enqueue d | enqueue e => a | b | c | d | e
        1 claim 5 => a1 b1 c1 d1 e1
        2 end a1 handed-back | end b1 retry 1 oops | end c1 completed fine | retry c => goes-on | goes-on due=1 | completed fine | yes
        3 find d | list state=running | list state=ready => running work default attempt=1 enqueued=0 started=1 | e d | c b a
        reopen
        4 find d | list state=running => ready work default attempt=1 enqueued=0 started=1 | none
        5 claim 9 => a1 d2 e2 b2 c1
        reopen
        reopen
        6 claim 9 => a2 d3 e3 b3 c2
        7 end d2 completed late | end d3 completed fine => stale | completed fine
        ",
    ),
    (
        "everything is there again behind a restart",
        PLAIN,
        "
        0 enqueue a due=500 key=k => a due=500
        0 enqueue b queue=mail | enqueue c priority=2 | enqueue d | enqueue e => b | c | d | e
        1 claim 3 => c1 b1 d1 more next=500
        2 end c1 completed fine | end b1 dead broken | end d1 unknown => completed fine | dead broken | goes-on
        2 recur nightly 1 => yes
        reopen
        3 count => scheduled=1 ready=1 completed=1 dead=1 unknown=1 oldest=0 default:2
        3 list => e d c b a
        3 schedules => nightly@1
        3 enqueue f key=k => a due=500
        3 find b => dead work mail attempt=1 enqueued=0 started=1 ended=2 error=broken
        600 claim 9 => e1 a1
        ",
    ),
    (
        "when a commit fails everything that waited for it is refused, and nothing of it has happened",
        Settings { fail_every: Some(2), ..PLAIN },
        "
        0 enqueue a => a
        1 enqueue b key=k => unavailable
        2 enqueue c => c
        3 claim 9 => unavailable
        4 count => ready=2 oldest=0 default:2
        5 end a1 completed x => unavailable
        6 claim 9 => a1 c1
        7 end a1 completed x => unavailable
        8 end a1 completed y => completed y
        9 recur nightly 9 d => unavailable
        10 recur nightly 9 d => yes
        11 recognise work => unavailable
        12 enqueue b key=k => b
        13 count => unavailable
        14 list => b d c a
        ",
    ),
];
