//! Which jobs are claimed, and in which order.

use super::Case;
use crate::PLAIN;

pub const CASES: &[Case] = &[
    (
        "the oldest goes first, and those of one moment in the order in which they came",
        PLAIN,
        "
        0 enqueue a | enqueue b => a | b
        1 enqueue c => c
        2 claim 2 => a1 b1 more
        2 claim 2 => c1
        2 claim 2 => none
        ",
    ),
    (
        "a higher priority goes first, in every queue",
        PLAIN,
        "
        0 enqueue a => a
        1 enqueue b priority=1 queue=mail => b
        2 enqueue c priority=-1 => c
        3 enqueue d priority=1000 queue=other => d
        4 claim 9 => d1 b1 a1 c1
        ",
    ),
    (
        "a step of priority is worth half a minute: nobody starves",
        PLAIN,
        "
        0 enqueue a => a
        29999 enqueue b priority=1 => b
        30000 enqueue c priority=1 => c
        30001 enqueue d priority=1 => d
        30001 claim 9 => b1 a1 c1 d1
        ",
    ),
    (
        "a limited queue gives as many as it may, the others go on",
        PLAIN,
        "
        0 enqueue a queue=mail | enqueue b queue=mail | enqueue c queue=mail => a | b | c
        1 enqueue d => d
        2 claim 9 mail=2 => a1 b1 d1
        2 claim 9 mail=0 => none
        2 claim 9 none=5 => c1
        ",
    ),
    (
        "more says whether others could be claimed, and not those of an exhausted queue",
        PLAIN,
        "
        0 enqueue a queue=mail | enqueue b queue=mail | enqueue c | enqueue d => a | b | c | d
        1 claim 1 mail=1 => a1 more
        1 claim 1 mail=0 => c1 more
        1 claim 1 mail=0 => d1
        1 claim 0 => more
        ",
    ),
    (
        "a delayed job waits for its time, and is then as old as that",
        PLAIN,
        "
        0 enqueue a due=500 | enqueue b due=300 => a due=500 | b due=300
        100 claim 9 => next=300
        299 claim 9 => next=300
        300 claim 9 => b1 next=500
        400 enqueue c => c
        600 enqueue d => d
        700 claim 9 => c1 a1 d1
        ",
    ),
    (
        "what is due already is ready at once and no older than it is",
        PLAIN,
        "
        1000 enqueue a => a
        1001 enqueue b due=1 | enqueue c due=1001 => b | c
        1001 claim 9 => a1 b1 c1
        ",
    ),
    (
        "without a time a job is ready whatever the clock does",
        PLAIN,
        "
        5000 enqueue a => a
        100 claim 9 => a1
        ",
    ),
];
