//! What the server has for the client of a stream before the body of its response: the stream's task fetches it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hyper::header::HeaderMap;

use super::stream_answer::StreamAnswer;

/// What is to be sent next.
#[derive(Debug)]
pub enum Order {
    /// `100 Continue`: the application reads the body of the request.
    Invite,
    EarlyHints(HeaderMap),
    Answer(Box<StreamAnswer>),
    /// There will be no response.
    Nothing,
}

/// What has been ordered and not fetched. No I/O.
#[derive(Debug, Default)]
struct OrderBook {
    invites: bool,
    hints: Vec<HeaderMap>,
    answer: Option<Box<StreamAnswer>>,
    end: OrdersEnd,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum OrdersEnd {
    #[default]
    None,
    /// Nothing more is ordered.
    Complete,
    /// The stream is to be reset at once, whatever was ordered.
    Cut,
}

impl OrderBook {
    fn fetch(&mut self) -> Option<Order> {
        if std::mem::take(&mut self.invites) {
            return Some(Order::Invite);
        }
        if !self.hints.is_empty() {
            return Some(Order::EarlyHints(self.hints.remove(0)));
        }
        if let Some(answer) = self.answer.take() {
            return Some(Order::Answer(answer));
        }
        (self.end != OrdersEnd::None).then_some(Order::Nothing)
    }
}

/// One book, and the task that waits for it.
#[derive(Debug, Default)]
struct OrderDesk {
    book: OrderBook,
    task: Option<Waker>,
}

/// The server's end. When it is dropped, nothing more is ordered.
#[derive(Debug)]
pub struct Orders(Arc<Mutex<OrderDesk>>);

/// The end of the stream's task.
#[derive(Debug)]
pub struct OrdersInbox(Arc<Mutex<OrderDesk>>);

pub fn orders() -> (Orders, OrdersInbox) {
    let desk = Arc::<Mutex<OrderDesk>>::default();
    (Orders(Arc::clone(&desk)), OrdersInbox(desk))
}

impl Orders {
    /// The client may send the body of its request.
    pub fn invite(&self) {
        self.order(|book| book.invites = true);
    }

    pub fn early_hints(&self, fields: HeaderMap) {
        self.order(|book| book.hints.push(fields));
    }

    /// To be called once.
    pub fn answer(&self, answer: StreamAnswer) {
        self.order(|book| book.answer = Some(Box::new(answer)));
    }

    /// Resets the stream at once, whatever it waits for.
    pub fn cut(&self) {
        self.order(|book| book.end = OrdersEnd::Cut);
    }

    fn order(&self, write: impl FnOnce(&mut OrderBook)) {
        let mut desk = lock(&self.0);
        write(&mut desk.book);
        let task = desk.task.take();
        drop(desk);
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        self.order(|book| {
            if book.end == OrdersEnd::None {
                book.end = OrdersEnd::Complete;
            }
        });
    }
}

impl OrdersInbox {
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<Order> {
        let mut desk = lock(&self.0);
        let Some(order) = desk.book.fetch() else { return desk.wait(context) };
        Poll::Ready(order)
    }

    /// Whether the stream is to be reset. If not, the task is woken when it is.
    pub fn is_cut(&self, context: &mut Context<'_>) -> bool {
        let mut desk = lock(&self.0);
        let is_cut = desk.book.end == OrdersEnd::Cut;
        if !is_cut {
            let _ = desk.wait::<()>(context);
        }
        is_cut
    }
}

impl OrderDesk {
    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<T> {
        if !self.task.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
            self.task = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

/// A panic while it was held cannot have left it half changed.
fn lock(desk: &Mutex<OrderDesk>) -> MutexGuard<'_, OrderDesk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use bytes::Bytes;
    use hyper::header::{HeaderValue, LINK};

    use super::*;
    use crate::http::h2::stream_answer::StreamBody;

    fn hints(link: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(LINK, HeaderValue::from_static(link))])
    }

    fn answer() -> StreamAnswer {
        StreamAnswer { status: 200, fields: HeaderMap::new(), body: StreamBody::Whole(Bytes::new()) }
    }

    /// What is fetched, in a word each, until something would have to be waited for.
    fn fetched(inbox: &OrdersInbox) -> Vec<String> {
        let mut context = Context::from_waker(Waker::noop());
        let mut words = Vec::new();
        while let Poll::Ready(order) = inbox.poll_next(&mut context) {
            words.push(match order {
                Order::Invite => "invite".into(),
                Order::EarlyHints(fields) => fields[LINK].to_str().unwrap().into(),
                Order::Answer(answer) => answer.status.to_string(),
                Order::Nothing => return words,
            });
        }
        words.push("wait".into());
        words
    }

    #[test]
    fn what_was_ordered_is_fetched_once_hints_before_the_answer() {
        let (orders, inbox) = orders();
        assert_eq!(fetched(&inbox), ["wait"]);
        orders.early_hints(hints("a"));
        orders.invite();
        assert_eq!(fetched(&inbox), ["invite", "a", "wait"]);
        orders.early_hints(hints("b"));
        orders.early_hints(hints("c"));
        orders.answer(answer());
        assert_eq!(fetched(&inbox), ["b", "c", "200", "wait"]);
        drop(orders);
        assert_eq!(fetched(&inbox), [""; 0]);
    }

    #[test]
    fn an_answer_is_fetched_though_nothing_follows_it() {
        let (orders, inbox) = orders();
        orders.answer(answer());
        drop(orders);
        assert_eq!(fetched(&inbox), ["200"]);
        assert!(!inbox.is_cut(&mut Context::from_waker(Waker::noop())));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_woken_by_an_order_and_by_a_cut_that_stays_one() {
        let (orders, inbox) = orders();
        let server = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            orders.answer(answer());
            tokio::time::sleep(Duration::from_secs(1)).await;
            orders.cut();
            drop(orders);
        };
        let task = async {
            let order = poll_fn(|context| inbox.poll_next(context)).await;
            assert!(matches!(order, Order::Answer(_)));
            poll_fn(|context| if inbox.is_cut(context) { Poll::Ready(()) } else { Poll::Pending }).await;
        };
        tokio::join!(server, task);
        assert!(inbox.is_cut(&mut Context::from_waker(Waker::noop())));
    }
}
