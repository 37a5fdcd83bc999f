//! Scripts: programs that are no workers, each with a transaction. They wait from their beginning to their end: for what they have asked for, or, as
//! long as they are silent, for time.

use parkade_core::limits::SCRIPT_SILENT_MAX;
use parkade_core::{AppId, Ending, Event, Outcome, QueryWork, Reason, Refusal, RequestId, Then, Wait};

use crate::model::{Answer, Model, Place, Request, Waiting};
use crate::queries::Asked;
use crate::world::World;

/// At a time.
const SCRIPTS_COUNT: usize = 4;

impl World {
    pub(crate) fn a_script_acts(&mut self) {
        let scripts: Vec<RequestId> = self.model.scripts().collect();
        if scripts.is_empty() || scripts.len() < SCRIPTS_COUNT && self.random.below(8) == 0 {
            return self.a_script_comes();
        }
        let script = *self.one_of(&scripts);
        if self.random.below(12) == 0 {
            self.model.request(script).here = false;
            return self.tell(Event::Left { request: script });
        }
        if !self.model.is_silent(script) {
            return self.a_script_speaks_out_of_turn(script);
        }
        let has_enqueued = !self.model.request(script).enqueued.is_empty();
        match self.random.below(8) {
            0 | 1 => self.a_script_enqueues(script),
            2 if has_enqueued => self.a_script_asks(script, Wait::Stored),
            _ => {
                let wait = self.query_of(script, Then::Await);
                if matches!(&wait, Wait::Query(query) if query.work != QueryWork::Alone) {
                    self.a_script_asks(script, wait);
                }
            }
        }
    }

    fn a_script_comes(&mut self) {
        let script = self.slot();
        let mut come = Request::new(AppId(0), "/script", self.now);
        (come.is_script, come.deadline) = (true, self.core.config().deadline);
        self.model.requests.insert(script, come);
        self.model.now = self.now;
        self.model.listen(script);
        self.tell(Event::ScriptCame { script });
    }

    fn a_script_asks(&mut self, script: RequestId, wait: Wait) {
        self.model.now = self.now;
        let mut asked = self.model.ask(script, &wait);
        if wait == Wait::Stored {
            asked.until = self.model.requests[&script].deadline.map(|deadline| self.now + deadline);
        }
        let waiting = Waiting::new(wait.clone(), Then::Await, None, self.now, asked);
        self.model.request(script).place = Place::Waiting(waiting);
        self.tell(Event::ScriptAsked { script, wait, payload: self.payload() });
    }

    /// It has not been told of the last thing.
    fn a_script_speaks_out_of_turn(&mut self, script: RequestId) {
        if self.random.below(8) > 0 {
            return self.a_database_acts();
        }
        let wait = self.query_of(script, Then::Await);
        let event = Event::ScriptAsked { script, wait, payload: self.payload() };
        self.note(|| format!("rogue {event:?}"));
        let mut effects = Vec::new();
        self.core.handle(self.now, event, &mut effects);
        assert_eq!(effects, [], "a script was heard out of turn");
        self.model.seen.insert("script out of turn");
    }

    fn a_script_enqueues(&mut self, script: RequestId) {
        self.enqueues_in_a_transaction(None, script, false);
        self.model.seen.insert("job of a script");
    }
}

impl Model {
    pub fn scripts(&self) -> impl Iterator<Item = RequestId> {
        self.requests.iter().filter(|(_, request)| request.is_script).map(|(id, _)| *id)
    }

    fn is_silent(&self, script: RequestId) -> bool {
        self.requests[&script].waiting().is_some_and(|waiting| matches!(waiting.wait, Wait::Timer { .. }))
    }

    /// It may say something, for as long as its time lasts.
    pub(crate) fn listen(&mut self, id: RequestId) {
        let now = self.now;
        let script = self.request(id);
        let after = script.deadline.filter(|deadline| !deadline.is_zero()).unwrap_or(SCRIPT_SILENT_MAX);
        script.place = Place::Waiting(Waiting::new(Wait::Timer { after }, Then::Await, None, now, Asked::default()));
    }

    pub(crate) fn tell_script(&mut self, id: RequestId, outcome: Outcome) {
        assert!(self.request(id).is_script, "told to somebody else");
        let waiting = self.request(id).waiting().expect("a script always waits").clone();
        match (&waiting.wait, outcome) {
            (Wait::Timer { .. }, Outcome::Refused { refusal: Refusal::ParkedFull | Refusal::Stopping }) => {
                self.seen.insert("script refused");
                self.request(id).answer = Answer::Ended;
                return;
            }
            (Wait::Query(_), _) => self.check_resumed(id, &waiting, outcome),
            (Wait::Stored, _) => self.check_of_jobs(id, &waiting, outcome),
            (wait, _) => panic!("a script that waits for {wait:?} is told {outcome:?}"),
        }
        self.seen.insert("script told");
        self.listen(id);
    }

    /// Its transaction has been ended before.
    pub(crate) fn forget_script(&mut self, id: RequestId, ending: Ending) {
        let (now, is_silent) = (self.now, self.is_silent(id));
        assert!(self.databases.lease_of(id).is_none(), "it has ended, and its transaction is open");
        let had_transaction = self.databases.released.iter().any(|lease| lease.request == id);
        let script = self.requests.remove(&id).expect("it was just there");
        let waiting = script.waiting().expect("a script always waits");
        let seen = match ending {
            Ending::Done if script.answer == Answer::Ended => "script refused",
            Ending::Done => {
                assert!(!script.here && is_silent && !had_transaction, "done: {script:?}");
                "script done"
            }
            Ending::Cancelled(Reason::ClientLeft) => {
                assert!(!script.here && (!is_silent || had_transaction), "left: {script:?}");
                if is_silent { "script left its transaction" } else { "script left its statement" }
            }
            Ending::Cancelled(Reason::Deadline) => {
                assert!(waiting.due().is_some_and(|due| due <= now), "before its time: {script:?}");
                if is_silent { "script silent for too long" } else { "script waited for the store for too long" }
            }
            Ending::Cancelled(Reason::Operator) => {
                assert_eq!(self.operated, Some(id));
                "script ended by an operator"
            }
            Ending::Cancelled(Reason::Stopping) => {
                let is_over = self.drain_until.map_or(self.may_fail, |until| until <= now);
                assert!(is_over, "before the grace was over");
                "script ended by a stop"
            }
            Ending::Cancelled(Reason::WorkerDied) => panic!("it has no worker"),
        };
        self.seen.insert(seen);
        self.ended.insert(id);
        self.freed.push(id);
    }
}
