//! What every decision may use.

use crate::bell::Bell;
use crate::config::Config;
use crate::effect::Effect;
use crate::moment::Moment;
use crate::report::counts::Counts;
use crate::structures::random::Random;
use crate::structures::timers::Timers;

/// The time, the choices of the operator, and where decisions leave their effects. [`Core`](crate::Core) lends it to the component that decides.
#[derive(Debug)]
pub struct Context {
    /// The moment of the present event.
    pub now: Moment,
    /// What the present event leads to.
    pub effects: Vec<Effect>,
    pub config: Config,
    pub random: Random,
    pub timers: Timers<Bell>,
    pub counts: Counts,
}

impl Context {
    pub fn new(config: Config) -> Self {
        let config = config.sane();
        Self {
            now: Moment::default(),
            effects: Vec::new(),
            random: Random::new(config.seed),
            timers: Timers::default(),
            counts: Counts::default(),
            config,
        }
    }
}
