package Parkade::Session;

use strict;
use warnings;

use Parkade::Compiled ();
use Parkade::Wire     qw(:all);
use Scalar::Util      qw(blessed);

use constant { VERSION_SPOKEN => 1, INCREMENTAL_BODIES => 1, MESSAGES => 2, HINTS_AND_TRAILERS => 8 };

# The phases of a link.
use constant { NEW => 0, GREETED => 1, READY => 2, OVER => 3 };

# The states of a stream that have no data of their own; the others are hashes: of rows that are arriving
# (`collecting`), of an answer whose body follows its head (`responding`), and of a WebSocket that was accepted (`socket`).
use constant { HELD => 'held', AWAITING => 'awaiting' };

my $NOTHING      = payload();
my %BEFORE_READY = map { ($_ => 1) } F_HELLO, F_PING, F_DRAIN, F_GOODBYE;

sub new {
    my ($class, %info) = @_;
    return bless {
        info       => \%info,
        phase      => NEW,
        concurrent => 0,
        rest       => '',
        highest    => 0,
        streams    => {},
        bodies     => {},    # of requests, as far as they have arrived and were not read
        tells      => 0,     # whether the core is told that a body is read
        has_hints  => 0,     # whether the core takes hints and trailers
        cancelled  => {},    # held streams whose answer is no longer wanted
        collecting => [],    # streams whose rows are arriving, in the order of arrival
        behind     => [],    # what must not begin before those
        branches   => {},    # open ones: the stream that each belongs to
        branch     => BRANCH_FIRST - 1,
    }, $class;
}

sub held {
    my ($self, $stream) = @_;
    my $state = $self->{streams}{$stream} or return 0;
    return $state eq HELD || ref $state && ($state->{responding} || $state->{socket}) ? 1 : 0;
}

sub awaiting {
    my ($self, $stream) = @_;
    my $state = $self->{streams}{$stream} or return 0;
    return $state eq AWAITING || ref $state && $state->{collecting} && $state->{collecting}[0] eq 'resumed' ? 1 : 0;
}

sub may_await {
    my ($self, $stream) = @_;
    return ($self->{streams}{$stream} || '') eq HELD && !$self->{cancelled}{$stream};
}

sub wanted {
    my ($self, $stream) = @_;
    return $self->held($stream) && !$self->{cancelled}{$stream};
}

sub takes_writes {
    my ($self, $stream) = @_;
    return $self->wanted($stream) || $self->awaiting($stream);
}

# In

sub receive {
    my ($self, $data) = @_;
    my @events;
    return \@events if $self->{phase} == OVER;
    $data = $self->{rest} . $data if length $self->{rest};
    my ($at, $size) = (0, length $data);
    my $went_well = eval {
        while ($size - $at >= HEADER_SIZE) {
            $at = Parkade::Compiled::requests($self, $data, $at, \@events)
              if Parkade::Compiled::IS_USED && $self->{phase} == READY && !@{ $self->{collecting} };
            last if $size - $at < HEADER_SIZE;
            my ($length, $kind, $flags, $stream) = unpack 'NCCx2N', substr $data, $at, HEADER_SIZE;
            Parkade::Violation->throw("a length of $length bytes is over " . FRAME_MAX) if $length > FRAME_MAX;
            last if $at + HEADER_SIZE + $length > $size;
            my $told = read_frame($kind, $stream, substr $data, $at + HEADER_SIZE, $length);
            $at += HEADER_SIZE + $length;
            $self->_take($kind, $flags, $stream, $told, \@events) if defined $told;
            last if $self->{phase} == OVER;
        }
        1;
    };
    if (!$went_well) {
        my $violation = $@;
        die $violation if !blessed $violation || !$violation->isa('Parkade::Violation');
        $self->{phase} = OVER;
        push @events, [reply => $self->goodbye('violation', "$violation")], [ended => 'violation', "$violation"];
    }
    $self->{rest} = $at < $size ? substr $data, $at : '';
    return \@events;
}

my %TAKE = (
    F_REQUEST,  '_request', F_RUN,  '_run',  F_RESUME, '_resume', F_DATA,    '_data',    F_WINDOWED, '_window',
    F_CANCEL,   '_cancel',  F_PING, '_ping', F_DRAIN,  '_drain',  F_GOODBYE, '_goodbye', F_HELLO,    '_hello',
    F_MESSAGE,  '_message', F_CLOSE, '_closed',
);

sub _take {
    my ($self, $kind, $flags, $stream, $told, $events) = @_;
    Parkade::Violation->throw("$NAMES{$kind} before its time") if $self->{phase} != READY && !$BEFORE_READY{$kind};
    my $take = $TAKE{$kind};
    $self->$take($flags & MORE, $stream, $told, $events, $flags & TEXT);
    return;
}

sub _hello {
    my ($self, undef, undef, $hello, $events) = @_;
    my ($least, $most, $features, $info) = @$hello;
    Parkade::Violation->throw('a second HELLO') if $self->{phase} != NEW;
    my $told = Parkade::MessagePack::ordered(language => 'perl', runtime => substr(sprintf('%vd', $^V), 0), pid => $$ + 0);
    my $offered = INCREMENTAL_BODIES | MESSAGES | HINTS_AND_TRAILERS;
    push @$events, [reply => frame(F_HELLO, 0, payload(VERSION_SPOKEN, VERSION_SPOKEN, $offered, $told))];
    if ($least <= VERSION_SPOKEN && VERSION_SPOKEN <= $most) {
        $self->{phase} = GREETED;
        $self->{tells} = $features & INCREMENTAL_BODIES;
        $self->{has_hints} = $features & HINTS_AND_TRAILERS;
        push @$events, [greeted => $info];
        return;
    }
    $self->{phase} = OVER;
    my $text = 'this end speaks ' . VERSION_SPOKEN;
    push @$events, [reply => $self->goodbye('version', $text)], [ended => 'version', "$text, the core $least to $most"];
    return;
}

sub _request {
    my ($self, $more, $stream, $request, $events) = @_;
    $self->_open($stream, HELD);
    if ($more) {
        $self->{bodies}{$stream} = { pieces => [], left => WINDOW, consumed => 0, is_complete => 0 };
        $request->[3] = undef;
    }
    $self->_begin([opened => $stream, $request], $events);
    return;
}

sub _run {
    my ($self, undef, $stream, $run, $events) = @_;
    $self->_open($stream, HELD);
    $self->_begin([given => $stream, $run], $events);
    return;
}

sub _open {
    my ($self, $stream, $state) = @_;
    Parkade::Violation->throw("stream $stream is opened after stream $self->{highest}")
      if $stream <= $self->{highest} || $stream >= BRANCH_FIRST;
    $self->{highest} = $stream;
    $self->{streams}{$stream} = $state;
    return;
}

sub _begin {
    my ($self, $event, $events) = @_;
    push @{ @{ $self->{collecting} } && !$self->{concurrent} ? $self->{behind} : $events }, $event;
    return;
}

sub _resume {
    my ($self, $more, undef, $resume, $events) = @_;
    my ($outcome, $streams, $function, $states) = @$resume;
    my $follows = Parkade::Wire::follows($outcome) ? 1 : 0;
    Parkade::Violation->throw('RESUME whose MORE and rows do not go together') if $follows != $more;
    if (defined $function) {
        for my $number (0 .. $#$streams) {
            my $stream = $streams->[$number];
            my $event  = [called => $stream, $function, $states->[$number], $outcome];
            if ($follows) {
                $self->_open($stream, _collecting($event));
                push @{ $self->{collecting} }, $stream;
            }
            else {
                $self->_open($stream, HELD);
                $self->_begin($event, $events);
            }
        }
        return;
    }
    my $event = [resumed => $streams, $outcome];
    for my $stream (@$streams) {
        Parkade::Violation->throw("RESUME of stream $stream, which awaits nothing")
          if ($self->{streams}{$stream} || '') ne AWAITING;
        if   ($follows) { $self->{streams}{$stream} = _collecting($event) }
        else            { $self->_hold($stream) }
    }
    push @$events, $event            if !$follows;
    return;
}

sub _collecting {
    my ($event) = @_;
    return { collecting => $event, body => '', left => WINDOW, consumed => 0 };
}

sub _hold {
    my ($self, $stream) = @_;
    if   ($self->{branches}{$stream}) { $self->_close_branch($stream) }
    else                              { $self->{streams}{$stream} = HELD }
    return;
}

sub _close_branch {
    my ($self, $branch) = @_;
    delete $self->{branches}{$branch};
    delete $self->{streams}{$branch};
    return;
}

sub _data {
    my ($self, $more, $stream, $data, $events) = @_;
    $self->_known($stream, 'DATA');
    my $body = $self->{bodies}{$stream};
    if ($body && !$body->{is_complete}) {
        _received($body, $stream, length $data);
        push @{ $body->{pieces} }, $data if length $data;
        $body->{is_complete} = !$more;
        push @$events, [arrived => $stream];
        return;
    }
    my $state = $self->{streams}{$stream} or return;    # it crossed the closing frame
    Parkade::Violation->throw("DATA on stream $stream, which has none to come") if !ref $state || !$state->{collecting};
    _received($state, $stream, length $data);
    $state->{body} .= $data;
    if ($more) {
        my $granted = _consumed($state, length $data);
        push @$events, [reply => $self->grant($stream, $granted)] if $granted;
        return;
    }
    $self->_hold($stream);
    my $event = $state->{collecting};
    my $outcome = $event->[0] eq 'called' ? $event->[4] : $event->[2];
    $outcome->[$outcome->[0] eq 'rows' ? 4 : 2] = $state->{body};
    if   ($event->[0] eq 'resumed') { push @$events, $event }
    else                            { $self->_collected($stream, $event, $events) }
    return;
}

sub _received {
    my ($window, $stream, $size) = @_;
    $window->{left} -= $size;
    Parkade::Violation->throw("DATA beyond the window of stream $stream") if $window->{left} < 0;
    return;
}

# How many bytes to grant again: not for every DATA, half as many frames as bytes allow.
sub _consumed {
    my ($window, $size) = @_;
    $window->{consumed} += $size;
    return 0 if $window->{consumed} < WINDOW / 2;
    my $granted = $window->{consumed};
    $window->{consumed} = 0;
    $window->{left} += $granted;
    return $granted;
}

# The rows of a call are complete, or never will be: what may begin now, up to the next that are still arriving.
sub _collected {
    my ($self, $stream, $event, $events) = @_;
    my @still = grep { $_ != $stream } @{ $self->{collecting} };
    $self->{collecting} = \@still;
    my @behind = sort { $a->[1] <=> $b->[1] } @{ $self->{behind} }, $event || ();
    my $first = @still && !$self->{concurrent} ? $still[0] : BRANCH_FIRST;
    push @$events, grep { $_->[1] < $first } @behind;
    $self->{behind} = [grep { $_->[1] > $first } @behind];
    return;
}

sub _window {
    my ($self, undef, $stream, $window, $events) = @_;
    $self->_known($stream, 'WINDOW');
    my $state = $self->{streams}{$stream};
    return if !ref $state || $self->{cancelled}{$stream};    # it crossed the end of the answer
    if ($state->{socket}) {
        my $was_full = $state->{window} <= 0;
        $state->{window} += $window->[0];
        push @$events, [writable => $stream] if $was_full && $state->{window} > 0;
        return;
    }
    return if !$state->{responding};
    $state->{window} += $window->[0];
    return if !length $state->{rest};
    my $data = _flush($stream, $state);
    push @$events, [reply => $data] if length $data;
    push @$events, [writable => $stream] if !length $state->{rest};
    return;
}

sub _message {
    my ($self, undef, $stream, $data, $events, $is_text) = @_;
    my $socket = $self->_socket($stream, 'MESSAGE') or return;
    Parkade::Violation->throw("MESSAGE beyond the window of stream $stream") if $socket->{left} <= 0;
    $socket->{left} -= length($data) + MESSAGE_OVERHEAD;
    push @$events, [said => $stream, $data, $is_text ? 1 : 0];
    return;
}

sub _closed {
    my ($self, undef, $stream, $close, $events) = @_;
    $self->_socket($stream, 'CLOSE') or return;
    push @$events, [hung_up => $stream, @$close[0, 1]];
    return;
}

# The WebSocket of a stream; nothing if it is over, which the frame has crossed.
sub _socket {
    my ($self, $stream, $name) = @_;
    $self->_known($stream, $name);
    my $state = $self->{streams}{$stream};
    return if !$state || $self->{cancelled}{$stream};
    Parkade::Violation->throw("$name on stream $stream, which is no WebSocket") if !ref $state || !$state->{socket};
    return $state;
}

sub _cancel {
    my ($self, undef, $stream, $cancel, $events) = @_;
    $self->_known($stream, 'CANCEL');
    my ($reason) = @$cancel;
    $self->_close_branch($_) for $self->branches_of($stream);
    my $state = $self->{streams}{$stream} or return;    # it crossed the closing frame
    if ($state eq AWAITING) {
        delete $self->{streams}{$stream};
    }
    elsif (ref $state && $state->{collecting}) {
        my $is_call = $state->{collecting}[0] eq 'called';
        push @$events, [reply => $self->error($stream, 'cancelled')];    # what would continue it has not begun
        return $self->_collected($stream, undef, $events) if $is_call;
    }
    else {
        $self->{cancelled}{$stream} = 1;
    }
    push @$events, [cancelled => $stream, $reason];
    return;
}

sub _ping {
    my ($self, undef, undef, $ping, $events) = @_;
    push @$events, [pinged => $ping->[0]];
    return;
}

sub _drain {
    my ($self, undef, undef, $drain, $events) = @_;
    push @$events, [draining => $drain->[0]];
    return;
}

sub _goodbye {
    my ($self, undef, undef, $goodbye, $events) = @_;
    $self->{phase} = OVER;
    push @$events, [ended => @$goodbye[0, 1]];
    return;
}

sub _known {
    my ($self, $stream, $name) = @_;
    Parkade::Violation->throw("$name on stream $stream, which was never opened")
      if $stream > $self->{highest} && $stream < BRANCH_FIRST;
    return;
}

sub branches_of {
    my ($self, $stream) = @_;
    return grep { $self->{branches}{$_} == $stream } keys %{ $self->{branches} };
}

sub read_body {
    my ($self, $stream) = @_;
    my $body = $self->{bodies}{$stream} or return ('', '');
    return (@{ $body->{pieces} } ? join '', splice @{ $body->{pieces} } : '', '') if $body->{is_complete};
    # Until the core knows that somebody reads it, it may send no more than what it had when it sent the request.
    my $is_news = $self->{tells} && !$body->{is_read}++;
    my $piece   = @{ $body->{pieces} } ? join '', splice @{ $body->{pieces} } : undef;
    my $granted = defined $piece ? _consumed($body, length $piece) : 0;
    return ($piece, $granted || $is_news ? $self->grant($stream, $granted) : '');
}

# Out

sub grant {
    my ($self, $stream, $bytes) = @_;
    return frame(F_WINDOWED, $stream, payload($bytes + 0));
}

sub ready {
    my ($self, $credit, $application) = @_;
    $self->{phase}      = READY;
    $self->{concurrent} = $application->{concurrent} ? 1 : 0;
    return frame(F_READY, 0, payload($credit, $application));
}

sub failed {
    my ($self, $text, $watch) = @_;
    return frame(F_FAILED, 0, payload(end_of($text, LOG_TEXT_MAX), @{ $watch || [] } ? $watch : ()));
}

sub respond {
    my ($self, $stream, $response) = @_;
    return $self->error($stream, 'cancelled') if $self->{cancelled}{$stream};
    $self->_close($stream);
    return frame(F_RESPONSE, $stream, $response);
}

sub _close {
    my ($self, $stream) = @_;
    delete $self->{streams}{$stream};
    delete $self->{bodies}{$stream};
    return;
}

sub begin {
    my ($self, $stream, $head) = @_;
    return '' if $self->{cancelled}{$stream};
    $self->{streams}{$stream} = { responding => 1, window => WINDOW, rest => '' };
    return frame(F_RESPONSE, $stream, $head, MORE);
}

sub data {
    my ($self, $stream, $chunk) = @_;
    my $state = $self->{streams}{$stream};
    return '' if $self->{cancelled}{$stream} || !ref $state || !$state->{responding};
    $state->{rest} .= $chunk;
    return _flush($stream, $state);
}

# As much as the window allows.
sub _flush {
    my ($stream, $state) = @_;
    my @frames;
    my $sent = 0;
    while ((my $left = length($state->{rest}) - $sent) && $state->{window}) {
        my $size = $left < INLINE_MAX ? $left : INLINE_MAX;
        $size = $state->{window} if $state->{window} < $size;
        push @frames, frame(F_DATA, $stream, substr($state->{rest}, $sent, $size), MORE);
        $sent += $size;
        $state->{window} -= $size;
    }
    substr $state->{rest}, 0, $sent, '';
    return join '', @frames;
}

sub blocked {
    my ($self, $stream) = @_;
    my $state = $self->{streams}{$stream};
    return 0 if !ref $state || !$state->{responding} || $self->{cancelled}{$stream};
    return length $state->{rest};
}

sub early_hints {
    my ($self, $stream, $fields) = @_;
    return $self->{has_hints} && $self->may_await($stream) ? frame(F_EARLY_HINTS, $stream, payload($fields)) : '';
}

sub finish {
    my ($self, $stream, $trailers) = @_;
    return $self->error($stream, 'cancelled') if $self->{cancelled}{$stream};
    $self->_close($stream);
    return frame(F_TRAILERS, $stream, payload($trailers)) if $trailers && $self->{has_hints};
    return frame(F_DATA, $stream, '');
}

# From now on the stream is a WebSocket.
sub accept {
    my ($self, $stream, $head) = @_;
    return '' if $self->{cancelled}{$stream};
    $self->{streams}{$stream} = { socket => 1, window => WINDOW, left => WINDOW, consumed => 0 };
    return frame(F_RESPONSE, $stream, $head, MORE);
}

sub is_socket {
    my ($self, $stream) = @_;
    my $state = $self->{streams}{$stream};
    return ref $state && $state->{socket} ? 1 : 0;
}

sub is_full {
    my ($self, $stream) = @_;
    return $self->is_socket($stream) && $self->{streams}{$stream}{window} <= 0 ? 1 : 0;
}

# A message is never cut: while there is any window, it may have any size.
sub message {
    my ($self, $stream, $data, $is_text) = @_;
    my $state = $self->{streams}{$stream};
    return '' if !ref $state || !$state->{socket} || $self->{cancelled}{$stream};
    die "the client of stream $stream has to read first\n" if $state->{window} <= 0;
    $state->{window} -= length($data) + MESSAGE_OVERHEAD;
    return frame(F_MESSAGE, $stream, $data, $is_text ? TEXT : 0);
}

# The application has taken a message of so many bytes.
sub taken {
    my ($self, $stream, $size) = @_;
    my $state = $self->{streams}{$stream};
    return '' if !ref $state || !$state->{socket} || $self->{cancelled}{$stream};
    my $granted = _consumed($state, $size + MESSAGE_OVERHEAD);
    return $granted ? $self->grant($stream, $granted) : '';
}

sub park {
    my ($self, $stream, $park) = @_;
    return $self->error($stream, 'cancelled') if $self->{cancelled}{$stream};
    $self->_close($stream);
    return frame(F_PARK, $stream, $park);
}

sub park_awaiting {
    my ($self, $stream, $park) = @_;
    die "stream $stream cannot be parked now\n" if !$self->may_await($stream);
    $self->{streams}{$stream} = AWAITING;
    return frame(F_PARK, $stream, $park);
}

sub branch {
    my ($self, $stream, $wait) = @_;
    my $branch = $self->{branch};
    do { $branch = $branch >= 2 * BRANCH_FIRST - 1 ? BRANCH_FIRST : $branch + 1 } while $self->{branches}{$branch};
    $self->{branch}            = $branch;
    $self->{branches}{$branch} = $stream;
    $self->{streams}{$branch}  = AWAITING;
    return ($branch, frame(F_PARK, $branch, "\x92$wait" . payload('branch', $stream)));
}

sub unpark {
    my ($self, $stream) = @_;
    die "stream $stream is not parked\n" if !$self->awaiting($stream);
    return $self->{streams}{$stream} eq AWAITING ? frame(F_UNPARK, $stream, $NOTHING) : '';
}

sub began {
    my ($self, $stream) = @_;
    return frame(F_BEGAN, $stream, $NOTHING);
}

sub end {
    my ($self, $stream, $kind, $payload) = @_;
    return $self->error($stream, 'cancelled') if $self->{cancelled}{$stream};
    $self->_close($stream);
    return frame($kind, $stream, $payload);
}

sub progress {
    my ($self, $stream, $progress) = @_;
    return $self->wanted($stream) ? frame(F_PROGRESS, $stream, $progress) : '';
}

sub enqueue {
    my ($self, $stream, $job) = @_;
    return frame(F_ENQUEUE, $self->takes_writes($stream) ? $stream : 0, $job);
}

sub publish {
    my ($self, $stream, @message) = @_;
    $stream = 0 if !$self->takes_writes($stream);
    return frame(F_PUBLISH, $stream, payload(@message));
}

sub error {
    my ($self, $stream, $reason, $text) = @_;
    $self->_close($stream);
    delete $self->{cancelled}{$stream};
    return frame(F_ERROR, $stream, payload($reason, end_of($text // '', LOG_TEXT_MAX)));
}

# Each response that is put aside takes two.
my %CREDIT_OF_ONE = map { ($_ => frame(F_CREDIT, 0, payload($_))) } 1, -1;

sub credit {
    my ($self, $delta) = @_;
    return $CREDIT_OF_ONE{$delta} // frame(F_CREDIT, 0, payload($delta));
}

sub pong {
    my ($self, $token) = @_;
    return frame(F_PONG, 0, payload($token));
}

sub goodbye {
    my ($self, $code, $text) = @_;
    return frame(F_GOODBYE, 0, payload($code, $text));
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Session - the worker's end of a link, without I/O

=head1 SYNOPSIS

    my $session = Parkade::Session->new;
    for my $event (@{ $session->receive($bytes) }) { ... }
    syswrite $link, $session->respond($stream, $response);

=head1 DESCRIPTION

Bytes in, events out; all other methods return the bytes to write (F<protocol/PROTOCOL.md>, sections 2 to 4). An event is
an array that begins with its name:

    reply BYTES                              write them
    greeted INFO                             the core's HELLO
    opened STREAM REQUEST                    a request to answer; its body is undef if it follows, see read_body
    arrived STREAM                           more of a request's body has come, or its end
    given STREAM RUN                         an attempt of a job
    called STREAM FUNCTION STATE OUTCOME     a wait is over: call the function, and answer
    resumed STREAMS OUTCOME                  the streams that awaited are held again
    cancelled STREAM REASON                  the answer is no longer wanted
    said STREAM MESSAGE IS_TEXT              the client of a WebSocket that was accepted has said this: see taken
    hung_up STREAM CODE TEXT                 it has closed its WebSocket, and CLOSE is due
    writable STREAM                          what was held back of an answer has been sent; a WebSocket takes more messages
    pinged TOKEN                             answer with pong
    draining SECONDS                         a notice
    ended CODE TEXT                          the link is over

=head1 METHODS

=head2 new

A link on which nothing has happened.

=head2 receive($bytes)

The events in the bytes, in their order. Nothing comes after C<ended>.

=head2 held($stream), awaiting($stream), may_await($stream), wanted($stream), takes_writes($stream), blocked($stream)

Whether a closing frame is due; whether it is parked with C<await>; whether it can be parked so now; whether it is held and
its answer is still wanted; whether jobs are enqueued on it; how many bytes of its answer wait for a window.

=head2 branches_of($stream)

The open branches of a stream.

=head2 read_body($stream)

What has arrived of a request's body and was not read: C<undef> if more has to arrive first, an empty string after its end.
The second value is to be written.

=head2 ready($credit, \%application), failed($text, \@watch), goodbye($code, $text), pong($token), credit($delta)

The frames of the link.

=head2 respond($stream, $response), park($stream, $park), end($stream, $kind, $payload), error($stream, $reason, $text)

A closing frame with an encoded payload. On a cancelled stream it becomes C<ERROR> with C<cancelled>.

=head2 begin($stream, $head), data($stream, $bytes), finish($stream, \@trailers)

A response whose body follows: its head, encoded with nil for the body; pieces, of which what exceeds the window is held
back; and its end, when nothing is held back. C<finish> may be given trailers, C<[NAME, VALUE, ...]>: cores that take none
get the end alone.

=head2 early_hints($stream, \@fields)

Fields for the client before a response has begun; nothing if the core takes none, or nobody wants them.

=head2 accept($stream, $head), is_socket($stream), message($stream, $bytes, $is_text), is_full($stream), taken($stream, $size)

A WebSocket: C<RESPONSE> with 101, encoded with nil for its body; a message for the client, but not while C<is_full>; and
that a message of so many bytes was taken, which makes room for others. C<end> closes it with C<CLOSE>.

=head2 park_awaiting($stream, $park), branch($stream, $wait), unpark($stream), began($stream)

Waits that this worker continues.

=head2 publish($stream, @message), enqueue($stream, $job), progress($stream, $progress), grant($stream, $bytes)

Frames of a request or a job; C<0> stands for none.

=cut
