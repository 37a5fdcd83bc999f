//! One stream, from its request to the end of its response.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use hyper::http::Response;
use hyper::{Request, StatusCode};
use tokio::sync::mpsc;

use super::client_io::SocketState;
use super::incoming::IncomingBody;
use super::incoming_rest::IncomingRest;
use super::orders::{Order, OrdersInbox, orders};
use super::outgoing::{EarlyEnd, Guard, ToClient, begin};
use super::piece_queue::BodyPiece;
use super::request::{ArrivedBody, StreamRequest};
use super::stream_answer::{SocketEnds, StreamAnswer, StreamBody};
use super::tunnel;
use super::unread_body::{BodyRestTask, discard};
use super::{FromStream, H2Context, StreamKey};
use crate::http::RefusedRequest;
use crate::http::answer;
use crate::http::budget::Budget;
use crate::http::fault::RequestFault;
use crate::http::forwarded;
use crate::http::head::Head;
use crate::http::limits::HttpLimits;
use crate::http::problem::Representation;
use crate::http::socket::Endpoints;

/// What all streams of a connection share.
pub struct StreamContext {
    pub endpoints: Endpoints,
    /// For heads that wait for their bodies.
    pub heads: Budget,
    pub socket: Arc<SocketState>,
    pub shared: H2Context,
}

type Respond = SendResponse<Bytes>;

/// What ends it early resets it, by dropping what is left of it. The request is in a box, because every future that
/// takes it keeps room for it for as long as the stream waits.
pub async fn serve(request: Box<Request<RecvStream>>, mut respond: Respond, context: Arc<StreamContext>) {
    if let Err(ended) = run(request, &mut respond, &context).await {
        tracing::debug!(%ended, "an HTTP/2 stream ends early");
    }
}

async fn run(
    request: Box<Request<RecvStream>>,
    respond: &mut Respond,
    context: &StreamContext,
) -> Result<(), EarlyEnd> {
    let (begun, rest) = match arrive(request, respond, context).await {
        Ok((arrived, mut rest)) => (answer(arrived, respond, &mut rest, context).await?, rest),
        Err((refused, rest)) => (begin_whole(respond, *refused, None, rest.is_some(), context)?, rest),
    };
    match begun {
        BegunAnswer::Complete => Ok(()),
        BegunAnswer::Whole(mut to_client, bytes) => to_client.send_last(bytes, rest).await,
        BegunAnswer::Pieces(mut to_client, pieces, guard) => to_client.pass(pieces, guard, rest).await,
        BegunAnswer::Socket(mut to_client, from_client, ends, guard) => {
            tunnel::pass(&mut to_client, from_client, ends, guard).await
        }
    }
}

/// A response whose head is sent, and what follows.
enum BegunAnswer {
    Complete,
    Whole(Box<ToClient>, Bytes),
    Pieces(Box<ToClient>, mpsc::UnboundedReceiver<BodyPiece>, Guard),
    Socket(Box<ToClient>, IncomingBody, SocketEnds, Guard),
}

/// A request of which the server knows.
struct Arrived {
    guard: Guard,
    orders: OrdersInbox,
    /// What the client sends, if the stream may become a WebSocket.
    from_client: Option<IncomingBody>,
    /// Whether the client sends its body: not if it waits for `100 Continue`.
    is_invited: bool,
}

/// Receives a request, and tells the server of it. Otherwise this is what the client is told. Both come with what reads the
/// rest of the body, if that has not come to its end.
async fn arrive(
    request: Box<Request<RecvStream>>,
    respond: &mut Respond,
    context: &StreamContext,
) -> Result<(Arrived, Option<BodyRestTask>), (Box<Response<Bytes>>, Option<BodyRestTask>)> {
    let shared = &context.shared;
    let mut arriving = StreamRequest::new(*request, &shared.setup)
        .map_err(|(fault, head)| (refuse(fault, head.as_ref(), context), None))?;
    let mut share = shared.budget.arriving_share();
    let received =
        arriving.receive(&shared.setup, &context.heads, &mut share, || inform(respond, 100, HeaderMap::new()));
    let received = received.await;
    let StreamRequest { head, body: incoming, .. } = arriving;
    let ArrivedBody { body, rest } = match received {
        Ok(arrived) => arrived,
        Err(fault) => {
            let rest = (!incoming.is_end()).then(|| BodyRestTask::run(discard(incoming, shared.clone())));
            return Err((refuse(fault, Some(&head), context), rest));
        }
    };
    let key = StreamKey(shared.next_key.fetch_add(1, Ordering::Relaxed) as u64);
    let guard = Guard { key, inbox: shared.inbox.clone(), has_ended: false };
    let (orders, inbox) = orders();
    let (mut from_client, mut reads_rest) = (None, None);
    let pieces = if let Some(pace) = rest {
        let (pieces, wanted) = mpsc::unbounded_channel();
        reads_rest = Some(BodyRestTask::run(IncomingRest::new(incoming, pace).serve(key, wanted, shared.clone())));
        Some(pieces)
    } else {
        from_client = head.socket.is_some().then_some(incoming);
        None
    };
    let is_invited = !head.expects_continue;
    let origin = forwarded::origin(context.endpoints, &head, &shared.setup.trust);
    let _ = shared.inbox.send(FromStream::Arrived { key, head, body, pieces, origin, orders, share });
    Ok((Arrived { guard, orders: inbox, from_client, is_invited }, reads_rest))
}

/// Waits for the response, and sends its head.
async fn answer(
    arrived: Arrived,
    respond: &mut Respond,
    rest: &mut Option<BodyRestTask>,
    context: &StreamContext,
) -> Result<BegunAnswer, EarlyEnd> {
    let Arrived { mut guard, orders, from_client, mut is_invited } = arrived;
    let limits = &context.shared.setup.limits;
    let Some(answer) = ordered(&orders, respond, &context.socket, &mut is_invited).await? else {
        return begin_whole(
            respond,
            refused(RequestFault::BodyEndedEarly, None, limits),
            None,
            rest.is_some(),
            context,
        );
    };
    let StreamAnswer { status, fields, body } = *answer;
    if !is_invited {
        // Nothing comes.
        *rest = None;
    }
    let is_whole = matches!(body, StreamBody::Whole(_) | StreamBody::Announced(_));
    guard.has_ended = is_whole;
    if is_whole && status < 400 {
        BodyRestTask::end(rest.take()).await;
    }
    let mut head = head(status, fields);
    let to_client = |stream, orders| Box::new(ToClient::new(stream, Some(orders), limits.write_stall));
    match body {
        StreamBody::Whole(bytes) => begin_whole(respond, head.map(|()| bytes), Some(orders), rest.is_some(), context),
        StreamBody::Announced(length) => {
            if !answer::is_bodiless(status) {
                head.headers_mut().insert(CONTENT_LENGTH, length.into());
            }
            if rest.is_none() {
                return begin(respond, head, true).map(|_| BegunAnswer::Complete);
            }
            Ok(BegunAnswer::Whole(to_client(begin(respond, head, false)?, orders), Bytes::new()))
        }
        StreamBody::Pieces(pieces, purpose) => {
            let mut to_client = to_client(begin(respond, head, false)?, orders);
            to_client.carry(purpose);
            Ok(BegunAnswer::Pieces(to_client, pieces, guard))
        }
        StreamBody::Socket(ends) => {
            let to_client = to_client(begin(respond, head, false)?, orders);
            let from_client = from_client.expect("only a stream that may become a WebSocket becomes one");
            Ok(BegunAnswer::Socket(to_client, from_client, ends, guard))
        }
    }
}

/// The response; None if there will be none. Until it comes, its client gets what may precede it. `is_invited`: see
/// [`Arrived`].
async fn ordered(
    orders: &OrdersInbox,
    respond: &mut Respond,
    socket: &SocketState,
    is_invited: &mut bool,
) -> Result<Option<Box<StreamAnswer>>, EarlyEnd> {
    loop {
        let order = poll_fn(|context| {
            if orders.is_cut(context) {
                return Poll::Ready(Err(EarlyEnd::Cut));
            }
            match respond.poll_reset(context) {
                Poll::Ready(_) => Poll::Ready(Err(EarlyEnd::Left)),
                Poll::Pending => orders.poll_next(context).map(Ok),
            }
        });
        match order.await? {
            Order::Invite => {
                *is_invited = true;
                inform(respond, 100, HeaderMap::new());
            }
            // As with HTTP/1.1, a client that has not read what came before gets none: they promise nothing, and h2 would
            // keep any number of them.
            Order::EarlyHints(fields) if !socket.is_blocked() => inform(respond, 103, fields),
            Order::EarlyHints(_) => {}
            Order::Answer(answer) => return Ok(Some(answer)),
            Order::Nothing => return Ok(None),
        }
    }
}

/// Sends an interim response. If it cannot be sent, the response itself may still be.
fn inform(respond: &mut Respond, status: u16, fields: HeaderMap) {
    if let Err(error) = respond.send_informational(head(status, fields)) {
        tracing::debug!(%error, status, "an interim response cannot be sent");
    }
}

fn head(status: u16, fields: HeaderMap) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = StatusCode::from_u16(status).expect("the status of a checked answer has three digits");
    *head.headers_mut() = fields;
    head
}

/// Sends a complete response, as far as its client has room for it; without `orders`, one of which the server does not
/// know. `has_rest`: its end has to wait for the rest of the request.
fn begin_whole(
    respond: &mut Respond,
    response: Response<Bytes>,
    orders: Option<OrdersInbox>,
    has_rest: bool,
    context: &StreamContext,
) -> Result<BegunAnswer, EarlyEnd> {
    let (parts, body) = response.into_parts();
    let mut head = Response::from_parts(parts, ());
    if body.is_empty() && !has_rest {
        return begin(respond, head, true).map(|_| BegunAnswer::Complete);
    }
    if !body.is_empty() {
        head.headers_mut().insert(CONTENT_LENGTH, body.len().into());
    }
    let stream = begin(respond, head, false)?;
    let mut to_client = ToClient::new(stream, orders, context.shared.setup.limits.write_stall);
    if has_rest {
        return Ok(BegunAnswer::Whole(Box::new(to_client), body));
    }
    match to_client.send_at_once(body)? {
        None => Ok(BegunAnswer::Complete),
        Some(rest) => Ok(BegunAnswer::Whole(Box::new(to_client), rest)),
    }
}

/// The server is told, and this is what the client is told.
fn refuse(fault: RequestFault, head: Option<&Head>, context: &StreamContext) -> Box<Response<Bytes>> {
    let shared = &context.shared;
    let refused = refused(fault, head, &shared.setup.limits);
    let bytes = refused.body().len();
    let line = head.map(|head| Box::new((head.method().to_owned(), head.target())));
    let peer = context.endpoints.peer;
    let _ = shared.inbox.send(FromStream::Refused(RefusedRequest { peer, fault, bytes, line }));
    Box::new(refused)
}

/// `request`: its head, if it is known.
fn refused(fault: RequestFault, request: Option<&Head>, limits: &HttpLimits) -> Response<Bytes> {
    let representation = request.map_or_else(Representation::default, Head::representation);
    let problem = fault.problem(limits);
    let mut fields = HeaderMap::new();
    let content_type = HeaderValue::from_bytes(representation.content_type()).expect("a content type is text");
    fields.insert("content-type", content_type);
    fields.insert("vary", HeaderValue::from_static("Accept"));
    if problem.status == 503 {
        fields.insert("retry-after", HeaderValue::from_static("1"));
    }
    if fault == RequestFault::SocketVersion {
        fields.insert("sec-websocket-version", HeaderValue::from_static("13"));
    }
    head(problem.status, fields).map(|()| problem.body(representation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<A, B, C, F: Future>(_: impl Fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    /// A connection may have 249 of them, for which its client has sent 9 bytes each.
    #[test]
    fn a_stream_that_waits_for_its_body_is_small() {
        assert!(size_of_future(serve) <= 1_024, "{}", size_of_future(serve));
    }
}
