//! All lives, by slot: no hashing, one table.

use super::life::{Life, Parked, Running, State};
use crate::limits::REQUESTS_COUNT_MAX;
use crate::moment::Moment;
use crate::refused::Refused;
use parkade_model::{AppId, RequestId, Segments};

#[derive(Debug)]
pub struct Lives {
    entries: Segments<Entry>,
    by_state: [usize; 6],
    /// How many of each application have not ended.
    by_app: Box<[usize]>,
}

/// A slot. The life of an ended request stays until the slot is used again, so that late events are known as late.
#[derive(Debug, Default)]
struct Entry {
    generation: u32,
    /// It stays with the application until it has ended.
    app: AppId,
    /// `None` only before the first use, and while the machine has it in hand.
    life: Option<Life>,
}

/// There may be a million of them.
const _: () = assert!(size_of::<Entry>() <= 64);

impl Lives {
    pub fn new(apps_count: usize) -> Self {
        Self { entries: Segments::default(), by_state: [0; 6], by_app: vec![0; apps_count].into() }
    }

    /// How many have not ended.
    pub fn count(&self) -> usize {
        self.count_of(State::Accepted)
            + self.count_of(State::Routed)
            + self.count_of(State::Running)
            + self.count_of(State::Parked)
    }

    pub fn count_of(&self, state: State) -> usize {
        self.by_state[state as usize]
    }

    /// How many of this application have not ended.
    pub fn count_of_app(&self, app: AppId) -> usize {
        self.by_app[usize::from(app.0)]
    }

    /// Whether `request` may begin in its slot: the one before it has ended, and had a lower generation.
    pub fn vacant(&mut self, request: RequestId) -> Result<(), Refused> {
        let slot = request.slot as usize;
        if slot >= REQUESTS_COUNT_MAX {
            return Err(Refused::SlotTaken);
        }
        match self.entries.get(slot) {
            None | Some(Entry { life: None, .. }) => Ok(()),
            Some(Entry { generation, life: Some(Life::Done | Life::Cancelled), .. })
                if *generation < request.generation =>
            {
                Ok(())
            }
            Some(_) => Err(Refused::SlotTaken),
        }
    }

    /// Gives a slot that is [`vacant`](Self::vacant) to a request of this application. Its life is [`put`](Self::put) there next.
    pub fn open(&mut self, request: RequestId, app: AppId) {
        let slot = request.slot as usize;
        self.entries.grow(slot + 1, Entry::default);
        if let Some(ended) = self.entries[slot].life.take() {
            self.by_state[ended.state() as usize] -= 1;
        }
        self.entries[slot].generation = request.generation;
        self.entries[slot].app = app;
    }

    /// The application of a request that has not ended, or is in hand.
    pub fn app(&self, request: RequestId) -> AppId {
        self.entries.get(request.slot as usize).map(|entry| entry.app).unwrap_or_default()
    }

    pub fn state(&self, request: RequestId) -> Option<State> {
        self.life(request).map(Life::state)
    }

    pub fn life(&self, request: RequestId) -> Option<&Life> {
        let entry = self.entries.get(request.slot as usize)?;
        entry.life.as_ref().filter(|_| entry.generation == request.generation)
    }

    /// Since when it has been in the queue, if it is there.
    pub fn queued_since(&self, request: RequestId) -> Option<Moment> {
        match self.life(request) {
            Some(Life::Routed(life)) => Some(life.journey.since()),
            Some(Life::Accepted(_) | Life::Running(_) | Life::Parked(_) | Life::Done | Life::Cancelled) | None => None,
        }
    }

    pub fn parked_mut(&mut self, request: RequestId) -> Option<&mut Parked> {
        let entry =
            self.entries.get_mut(request.slot as usize).filter(|entry| entry.generation == request.generation)?;
        if let Some(Life::Parked(parked)) = &mut entry.life { Some(parked) } else { None }
    }

    pub fn running_mut(&mut self, request: RequestId) -> Option<&mut Running> {
        let entry =
            self.entries.get_mut(request.slot as usize).filter(|entry| entry.generation == request.generation)?;
        if let Some(Life::Running(running)) = &mut entry.life { Some(running) } else { None }
    }

    pub fn take(&mut self, request: RequestId) -> Result<Life, Refused> {
        let entry = self.entries.get_mut(request.slot as usize).ok_or(Refused::Unknown)?;
        if entry.generation > request.generation {
            return Err(Refused::Ended);
        }
        let life = entry.life.take_if(|_| entry.generation == request.generation).ok_or(Refused::Unknown)?;
        self.by_state[life.state() as usize] -= 1;
        if life.state() < State::Done {
            self.by_app[usize::from(entry.app.0)] -= 1;
        }
        Ok(life)
    }

    /// Puts back what was taken.
    pub fn put(&mut self, request: RequestId, life: Life) {
        let entry = &mut self.entries[request.slot as usize];
        self.by_state[life.state() as usize] += 1;
        if life.state() < State::Done {
            self.by_app[usize::from(entry.app.0)] += 1;
        }
        entry.life = Some(life);
    }

    /// All that have not ended.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Life)> {
        self.entries.iter().zip(0_u32..).filter_map(|(entry, slot)| {
            let life = entry.life.as_ref().filter(|life| life.state() < State::Done)?;
            Some((RequestId { slot, generation: entry.generation }, life))
        })
    }
}
