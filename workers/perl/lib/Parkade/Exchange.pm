package Parkade::Exchange;

use strict;
use warnings;

use Parkade::Call        ();
use Parkade::MessagePack qw(bin encode);
use Parkade::Wire        qw(response FRAME_MAX INLINE_MAX);

use constant {
    # Bytes that a writer may hold beyond what its client has room for: an event loop has to go on meanwhile. Then: write
    # waits until the client has read.
    HELD_BACK_MAX => 4_194_304,
};

my $is_copy;    # in a thread of the application

sub new {
    my ($class, $link, $stream) = @_;
    return bless { link => $link, stream => $stream }, $class;
}

sub stream   { return $_[0]{stream} }
sub is_open  { return !$_[0]{closed} }
sub has_begun { return $_[0]{begun} }

# Whether anybody still wants the answer, as far as is known.
sub is_wanted {
    my ($self) = @_;
    return !$self->{closed} && $self->{link}->session->wanted($self->{stream});
}

sub respond {
    my ($self, $status, $headers, $body) = @_;
    return if $self->{closed};
    if (length $body > INLINE_MAX) {
        # Of a body that follows, the core does not know how long it will be.
        my $is_told = grep { !($_ % 2) && lc $headers->[$_] eq 'content-length' } 0 .. $#$headers;
        $self->begin($status, $is_told ? $headers : [@$headers, 'content-length', bin(length $body)]);
        $self->write($body);
        return $self->finish;
    }
    $self->_close($self->{link}->session->respond($self->{stream}, response($status, $headers, $body)));
    return;
}

sub begin {
    my ($self, $status, $headers) = @_;
    return if $self->{closed};
    $self->{begun} = 1;
    my $link = $self->{link};
    $link->write($link->session->begin($self->{stream}, response($status, $headers)));
    return;
}

sub write {
    my ($self, $chunk) = @_;
    return if $self->{closed};
    my ($link, $stream) = @$self{qw(link stream)};
    my $session = $link->session;
    my $data = $session->data($stream, $chunk);
    $link->write($data) if length $data;
    $link->hear while $session->blocked($stream) > HELD_BACK_MAX;
    return;
}

sub finish {
    my ($self) = @_;
    return if $self->{closed};
    my ($link, $stream) = @$self{qw(link stream)};
    if ($link->session->blocked($stream)) {
        $self->{is_ending} = 1;
        $link->{exchanges}{$stream} = $self;    # strong: nobody else keeps it now
        return;
    }
    $self->_close($link->session->finish($stream));
    return;
}

# Calls the code with the body of the request, now or, if more of it has to arrive first, when the link says `collected`.
sub collect {
    my ($self, $body, $then) = @_;
    @$self{qw(arriving then)} = ($body, $then);
    $self->collected if $body->is_whole;
    return;
}

sub collected {
    my ($self) = @_;
    my ($body, $then) = delete @$self{qw(arriving then)};
    $then->($body->handle);
    return;
}

# Sends what $next returns, until it returns nothing, as the client reads it; then calls $end.
sub pull {
    my ($self, $next, $end) = @_;
    @$self{qw(source at_end)} = ($next, $end);
    return $self->continue;
}

# The client has taken what was held back.
sub continue {
    my ($self) = @_;
    return if $self->{closed};
    return $self->finish if $self->{is_ending};
    my $next = $self->{source} or return;
    my ($link, $stream) = @$self{qw(link stream)};
    my $session = $link->session;
    my $went_well = eval {
        while (!$session->blocked($stream) && !$session->{cancelled}{$stream}) {
            my $chunk = Parkade::Call::value($next);
            if (!defined $chunk) {
                $self->_end_source;
                $self->finish;
                last;
            }
            my $data = $session->data($stream, $chunk);
            $link->write($data) if length $data;
        }
        1;
    };
    if (!$went_well) {
        my $error = $@;
        $self->fail("$error");
        Parkade::Log::failed('while an answer was being streamed', $error);
    }
    $self->cancel('client_left') if !$self->{closed} && $session->{cancelled}{$stream};
    return;
}

sub _end_source {
    my ($self) = @_;
    my $end = delete $self->{at_end};
    delete $self->{source};
    return if !$end;
    my $fault = Parkade::Call::fault($end);
    Parkade::Log::failed('while the body of an answer was closed', $fault) if defined $fault;
    return;
}

# The application has failed: before a response has begun the client gets 500, afterwards its connection is closed. Only
# a job keeps the text: it is not for clients.
sub fail {
    my ($self, $text) = @_;
    return if $self->{closed};
    $self->_close($self->{link}->session->error($self->{stream}, 'application', $self->{job} ? $text : ''));
    return;
}

sub park {
    my ($self, $wait, $then) = @_;
    return if $self->{closed};
    $self->_close($self->{link}->session->park($self->{stream}, _told($wait, $then)));
    return;
}

# What parks a stream.
sub _told {
    my ($wait, $then) = @_;
    my $told = encode([$wait, $then]);
    return $told if length $told <= FRAME_MAX;
    my $what = $wait->[0] eq 'query' ? 'a query has at most %d bytes with its parameters' : 'a wait has at most %d bytes with its answer';
    die sprintf "$what, not %d\n", FRAME_MAX, length $told;
}

# The code of the stream goes on in this worker after the wait; then $resume is called with its outcome.
sub await {
    my ($self, $wait, $resume) = @_;
    my ($link, $stream) = @$self{qw(link stream)};
    my $session = $link->session;
    die "a request or a job can await only one wait at a time, and only before it is answered\n"
      if $self->{closed} || !$session->may_await($stream);
    my $told = _told($wait, ['await']);
    $self->{resume} = $resume;
    $self->{job}->pause if $self->{job};
    $link->keep($self);
    $link->write($session->park_awaiting($stream, $told));
    return;
}

# The code no longer wants what it awaits. The stream is held again when the core says so.
sub unpark {
    my ($self) = @_;
    my ($link, $stream) = @$self{qw(link stream)};
    return if $self->{closed} || !delete $self->{resume} || !$link->session->awaiting($stream);
    my $frame = $link->session->unpark($stream);
    $link->write($frame) if length $frame;
    return;
}

# Calls the code as soon as the stream may be answered.
sub when_held {
    my ($self, $code) = @_;
    return $code->() if !$self->{link}->session->awaiting($self->{stream});
    push @{ $self->{when_held} }, $code;
    return;
}

sub resume {
    my ($self, $outcome) = @_;
    my $resume = delete $self->{resume};
    $resume->($outcome) if $resume;
    $_->() for @{ delete $self->{when_held} || [] };
    return;
}

sub end {
    my ($self, $kind, $payload) = @_;
    return if $self->{closed};
    $self->_close($self->{link}->session->end($self->{stream}, $kind, $payload));
    return;
}

sub cancel {
    my ($self, $reason) = @_;
    return if $self->{closed};
    my $link = $self->{link};
    # What is parked is closed already.
    $self->_close($link->session->held($self->{stream}) ? $link->session->error($self->{stream}, 'cancelled', '') : '');
    delete @$self{qw(resume when_held)};
    for my $told (@{ delete $self->{on_cancel} || [] }) {
        my $fault = Parkade::Call::fault($told, $reason);
        Parkade::Log::failed('in a callback of parkade.on_cancel', $fault) if defined $fault;
    }
    return;
}

sub on_cancel {
    my ($self, $code) = @_;
    push @{ $self->{on_cancel} }, $code;
    return;
}

# Called when the stream is closed.
sub on_close {
    my ($self, $code) = @_;
    push @{ $self->{on_close} }, $code;
    return;
}

sub put_aside {
    my ($self) = @_;
    $self->{is_aside} = 1;
    $self->{has_credit} = $self->{link}->put_aside($self);
    return;
}

sub take_up {
    my ($self) = @_;
    $self->{link}->taken_up($self) if delete $self->{is_aside};
    return;
}

sub _close {
    my ($self, $frame) = @_;
    $self->{closed} = 1;
    my $link = $self->{link};
    $link->write($frame) if length $frame;
    $self->take_up if $self->{is_aside};
    delete $link->{exchanges}{ $self->{stream} };
    delete @$self{qw(arriving then)} if $self->{arriving};
    $self->_end_source if $self->{source} || $self->{at_end};
    my $on_close = delete $self->{on_close} or return;
    for my $told (@$on_close) {
        eval { $told->($self); 1 } or Parkade::Log::failed('after a response', $@);
    }
    return;
}

# Perl calls it in each thread of the application, which has copies of all exchanges. (With CLONE_SKIP it would not copy
# them, and panic because of the weak references to them.)
sub CLONE { $is_copy = 1; return }

# Whoever was to answer has been forgotten.
sub DESTROY {
    return if $_[0]{closed} || $is_copy;
    my ($self) = @_;
    return if ${^GLOBAL_PHASE} eq 'DESTRUCT' || $$ != $self->{link}{pid};
    local ($@, $!, $?);
    my $is_left = $self->{link}{running} == $self->{stream};    # its code did not return
    return $self->finish if $self->{begun} && !$is_left;
    local $self->{link}{running} = $self->{stream};    # another request may have forgotten it
    return $self->{link}->exits($self) if $is_left;
    my $why = 'the application dropped the responder of a request without answering it';
    Parkade::Log::record('error', $why);
    $self->fail($why);
    return;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Exchange - one request that a worker holds, and how it is answered

=head1 DESCRIPTION

Whoever keeps it may answer, now or later. If nobody keeps it any more, the request ends: with 500, or, if its body has
begun, with what was written.

=head1 METHODS

=head2 new($link, $stream)

=head2 stream, is_open, has_begun, is_wanted

Its number; whether a closing frame is due; whether its response has begun; whether the client is still there, as far as is
known.

=head2 respond($status, \@headers, $body)

The whole response.

=head2 begin($status, \@headers), write($bytes), finish

A response in pieces. What the client has no room for is held back; above 4 MiB, C<write> waits for the client.

=head2 pull($next, $end)

The body of a response that has begun: what C<$next> returns until it returns C<undef>, as the client reads it. No worker
waits for a slow client. C<$end> is called when no more is read.

=head2 continue, cancel($reason)

What the link tells: the client has taken what was held back, or the answer is no longer wanted.

=head2 fail($text), park($wait, $then), end($kind, $payload)

Closes it in another way.

=head2 await($wait, $resume), unpark, resume($outcome), when_held($code)

Parks the stream, whose code goes on in this worker: C<$resume> is called with the outcome of the wait. C<unpark> gives the wait
up. C<when_held> calls the code at once, or, if the stream is parked, when it is held again.

=head2 collect($body, $code), collected

Calls the code with the handle and the length of the request's body, a L<Parkade::PSGI::Input>, when it is there. Others are
answered until then.

=head2 on_cancel($code), on_close($code)

Calls the code with the reason when the client leaves before the answer has ended; calls it with the exchange when
that is closed.

=head2 CLONE

For Perl: copies that threads of the application have end no request.

=head2 put_aside, take_up

Others are answered meanwhile; it is the one that is answered now.

=cut
