package Parkade::Link;

use strict;
use warnings;

use Carp         ();
use Errno        qw(EINTR);
use Scalar::Util qw(blessed weaken);
use Parkade::Call     ();
use Parkade::Checks   ();
use Parkade::Exchange ();
use Parkade::Link::Loop ();
use Parkade::Log  ();
use Parkade::Process ();
use Parkade::Wire qw(CREDIT_MAX FRAME_MAX);

our @CARP_NOT = qw(Parkade Parkade::Channel Parkade::PSGI);

use constant {
    # Under load the core reads about 50 frames at a time, and sends ahead no more than a worker clears in about a
    # millisecond: this never limits it.
    CREDIT => 64,
    # Bytes asked of one read.
    RECEIVE_SIZE => 65_536,
    # Answers that are put aside; each is granted another credit. Then: the next ones count against the first credit, so
    # that the core keeps what it cannot give in its own queue.
    ASIDE_MAX => CREDIT_MAX - 64,
    # With coroutines: requests whose code has begun and that await something of the application's own.
    COROUTINES_CREDIT => 4_096,
};

my $current;    # that of this process

my %WITH_CODE = map { ($_ => 1) } qw(opened called given);    # events that run the application's code

sub current { return $current }

sub new {
    my ($class, $reader, $writer, $session) = @_;
    return $current = bless {
        reader    => $reader,
        writer    => $writer,
        session   => $session,
        pid       => $$,
        running   => 0,       # the stream for which the application's code is running
        kept      => [],      # events that arrived while it ran
        exchanges => {},      # of streams that have been put aside, or whose body is read from here
        aside     => 0,
        leaving   => 0,
        receive_size => RECEIVE_SIZE,
    }, $class;
}

sub session { return $_[0]{session} }
sub reader  { return $_[0]{reader} }
sub running { return $_[0]{running} }

sub write {
    my ($self, $data) = @_;
    $self->_leave_as_child if $$ != $self->{pid};
    while (length $data) {
        my $written = syswrite $self->{writer}, $data;
        if (defined $written) {
            return if $written == length $data;
            substr $data, 0, $written, '';
        }
        elsif ($! != EINTR) {
            Parkade::Process::leave(0);    # the core has gone
        }
    }
    return;
}

# A child that the application has forked returns from its code into here. It has no link: what it read would be lost.
sub _leave_as_child {
    my ($self) = @_;
    Parkade::Process::leave($self->{has_died} ? 255 : 0);
    return;
}

# The bytes that are there; waits for the first. Empty if the core has gone.
sub receive {
    my ($self) = @_;
    $self->_leave_as_child if $$ != $self->{pid};
    while (1) {
        my $read = sysread $self->{reader}, my $data, $self->{receive_size};
        return $data if defined $read;
        return '' if $! != EINTR;
    }
}

sub is_readable {
    my ($self) = @_;
    vec(my $set = '', fileno $self->{reader}, 1) = 1;
    return 0 < select $set, undef, undef, 0;
}

sub greet {
    my ($self) = @_;
    my $info;
    until ($info) {
        my $events = $self->_received or return;
        for my $event (@$events) {
            my ($name, @rest) = @$event;
            if    ($name eq 'reply')    { $self->write($rest[0]) }
            elsif ($name eq 'greeted')  { $info = $rest[0] }
            elsif ($name eq 'pinged')   { $self->write($self->{session}->pong($rest[0])) }
            elsif ($name eq 'ended')    { return }
        }
    }
    return $info;
}

# What arrived while the application was loading. Whether the core still wants the worker.
sub is_wanted {
    my ($self) = @_;
    while ($self->is_readable) {
        my $events = $self->_received or return 0;
        for my $event (@$events) {
            my ($name, @rest) = @$event;
            if    ($name eq 'reply')  { $self->write($rest[0]) }
            elsif ($name eq 'pinged') { $self->write($self->{session}->pong($rest[0])) }
            elsif ($name eq 'ended')  { return 0 }
            elsif ($name eq 'draining') {
                $self->write($self->{session}->goodbye('stopping', ''));
                return 0;
            }
        }
    }
    return 1;
}

sub _received {
    my ($self) = @_;
    my $data = $self->receive;
    return length $data ? $self->{session}->receive($data) : undef;
}

sub serve {
    my ($self, $application) = @_;
    $self->begin($application);
    local $self->{compiled} = $self->_compiled($application);
    until ($self->_may_leave) {
        my @ended = $self->turn;
        return @ended if @ended;
    }
    $self->leave;
    return ('stopping', '');
}

# Says so, if it holds nothing that it has begun.
sub leave {
    my ($self) = @_;
    return if !$self->_may_leave || $self->{has_left}++;
    $self->write($self->{session}->goodbye('stopping', 'the application asked for it'));
    return;
}

# The application has called exit: it ends what it has begun, and says so. What has not begun goes to another worker.
sub exits {
    my ($self, @running) = @_;
    my $why = 'the application called exit';
    Parkade::Log::record('error', "$why: its worker ends") if !$self->{has_exited}++;
    $self->leave_soon;    # before the closing frames, so that nobody else is sent here
    my ($session, $exchanges) = @$self{qw(session exchanges)};
    push @running, $self->{attempted} // ();
    for my $exchange (@running, map { $exchanges->{$_} // () } sort { $a <=> $b } keys %$exchanges) {
        $exchange->fail($why) if $session->held($exchange->{stream});
    }
    $self->leave;
    return;
}

sub begin {
    my ($self, $application) = @_;
    $self->{application} = $application;
    Parkade::Log::of_stream(sub { $self->{running} });
    my $ready = $self->_ready($application);
    $self->{credit} = $ready->{concurrent} ? COROUTINES_CREDIT : CREDIT;
    $self->write($self->{session}->ready($self->{credit}, $ready));
    return;
}

sub _ready {
    my ($self, $application) = @_;
    my $ready = $application->ready;
    $ready->{watch} = $self->{watch} if @{ $self->{watch} || [] };
    return $ready;
}

# What it declares has to go in one frame.
sub check {
    my ($self, $application) = @_;
    my $size = length Parkade::Wire::payload(CREDIT_MAX, $self->_ready($application));
    die sprintf "the application declares too much: its routes, jobs and channels have %d bytes, and at most %d are possible\n",
      $size, FRAME_MAX
      if $size > FRAME_MAX;
    return $application;
}

# What READY tells the core to watch.
sub watch {
    my ($self, $watch) = @_;
    $self->{watch} = $watch;
    return;
}

# That of the requests that come from now on.
sub application {
    my ($self, $application) = @_;
    $self->{application} = $application;
    return;
}

# Reads once, and runs what has come. Returns how and why the link has ended, or nothing.
sub turn {
    my ($self) = @_;
    my $events = $self->_next or return ('gone', '');
    for my $event (@$events) {
        return @$event[1, 2] if $event->[0] eq 'ended';
        if   ($WITH_CODE{ $event->[0] }) { $self->_run(@$event) }
        else                             { $self->_take($event) }
        $self->settle if $self->{kept_with_others};
        $self->_leave_as_child if $$ != $self->{pid};
        last if $self->_may_leave;
    }
    return;
}

sub _compiled {
    my ($self, $application) = @_;
    return if !$application->can('compiled');
    my %descriptors = map { ($_ => fileno $self->{$_}) } qw(reader writer);
    return $application->compiled($self, %descriptors, receive_size => $self->{receive_size});
}

# Nobody but the application's code could still change what is kept so. Whether that keeps it is known when it has returned.
sub keep_with_others {
    my ($self, $kept) = @_;
    weaken $_ for @$kept;
    push @{ $self->{kept_with_others} }, $kept;
    return;
}

sub settle {
    my ($self) = @_;
    for my $kept (@{ delete $self->{kept_with_others} || [] }) {
        for my $reference (@$kept) {
            my $strong = $reference;
            $reference = $strong if defined $strong;
        }
    }
    return;
}

# The next events; nothing if the core has gone.
sub _next {
    my ($self) = @_;
    Parkade::Link::Loop::wait($self->{reader}) if !@{ $self->{kept} } && Parkade::Link::Loop::is_loaded();
    return [] if $self->_may_leave;
    if (@{ $self->{kept} }) {
        my $events = $self->{kept};
        $self->{kept} = [];
        return $events;
    }
    return $self->_received if !$self->{compiled};
    $self->{compiled}->serve or return;
    $self->_leave_as_child if $$ != $self->{pid};
    # What it has left is in the session's buffer, unless the application has read it meanwhile.
    return $self->_may_leave || @{ $self->{kept} } ? [] : $self->{session}->receive('');
}

# Requests that have come and were not begun are untouched for the core: it gives them to another worker.
sub _may_leave {
    my ($self) = @_;
    return $self->{leaving} && !%{ $self->{exchanges} };
}

sub leave_soon {
    my ($self) = @_;
    $self->write($self->{session}->credit(-$self->{credit})) if !$self->{leaving}++;
    Parkade::Link::Loop::interrupt();
    return;
}

sub _take {
    my ($self, $event) = @_;
    my ($name, $stream, @rest) = @$event;
    if ($name eq 'reply') {
        $self->write($stream);
    }
    elsif ($name eq 'pinged') {
        $self->write($self->{session}->pong($stream));
    }
    elsif ($name eq 'writable') {
        my $exchange = $self->{exchanges}{$stream};
        $self->_as($stream, sub { $exchange->continue }) if $exchange;
    }
    elsif ($name eq 'arrived') {
        my $exchange = $self->{exchanges}{$stream};
        $self->_collect($exchange) if $exchange && $exchange->{arriving};
    }
    elsif ($name eq 'cancelled') {
        my $exchange = $self->{exchanges}{$stream};
        $self->_as($stream, sub { $exchange->cancel($rest[0]) }) if $exchange;
    }
    elsif ($name eq 'resumed') {
        for my $number (@$stream) {
            my $exchange = $self->{exchanges}{$number} or next;
            $self->_as($number, sub { $self->{application}->resumed($exchange, $rest[0]) });
        }
    }
    return;    # DRAIN changes nothing: GOODBYE comes when no work is left
}

sub _run {
    my ($self, $name, $stream, @rest) = @_;
    my $session  = $self->{session};
    my $exchange = Parkade::Exchange->new($self, $stream);
    return $exchange->cancel('before it began') if $session->{cancelled}{$stream};
    $self->{running} = $stream;
    if ($session->{concurrent}) {
        $self->{exchange} = $exchange;
        $self->write($session->began($stream)) if $self->{application}->begins($name, @rest);
    }
    return $self->_attempt($exchange, $name, @rest);
}

# Takes more of a body that arrives while others are answered. When it is there, its request is answered like any other.
sub _collect {
    my ($self, $exchange) = @_;
    my $is_whole;
    if (!eval { $is_whole = $exchange->{arriving}->is_whole; 1 }) {
        my $error = $@;
        $self->_as($exchange->{stream}, sub { $self->{application}->failed($exchange, $error) });
    }
    return if !$is_whole;
    $exchange->take_up;
    $self->{running} = $exchange->{stream};
    return $self->_attempt($exchange, 'collected');
}

sub _attempt {
    my ($self, $exchange, $name, @rest) = @_;
    my $application = $self->{application};
    weaken($self->{attempted} = $exchange);
    my $fault = Parkade::Call::fault($application->can($name), $application, $exchange, @rest);
    if (defined $fault) {
        $self->{has_died} = 1 if $$ != $self->{pid};
        $application->failed($exchange, $fault);
    }
    $self->{running} = 0;
    delete $self->{exchange};
    $exchange->put_aside if !$exchange->{closed};
    return;
}

# A request that the compiled loop has begun, and whose outcome is not usual.
sub take_over {
    my ($self, $ticket, $env, @outcome) = @_;
    my $exchange = $self->{application}->taken_over($self, $ticket, $env);
    my ($response, $error) = @outcome;
    $self->{has_died} = 1 if @outcome > 1 && $$ != $self->{pid};
    return $self->_attempt($exchange, @outcome == 1 ? ('answered', $env, $response) : ('failed', $error));
}

# A request that the compiled loop has begun, and whose code calls exit: its exchange ends, and says so.
sub abandoned {
    my ($self) = @_;
    Parkade::Exchange->new($self, $self->{running});
    return;
}

# Runs code on behalf of a stream.
sub _as {
    my ($self, $stream, $code) = @_;
    local $self->{running} = $stream;
    $code->();
    return;
}

# That of the code which is running.
sub exchange {
    my ($self) = @_;
    return $self->{exchange} // $self->{exchanges}{ $self->{running} };
}

# Until it is closed: nobody else may keep it.
sub keep {
    my ($self, $exchange) = @_;
    return $self->{exchanges}{ $exchange->{stream} } = $exchange;
}

# A stream that is held while others are answered: the core is told that it may give one more (PROTOCOL.md, Credit).
sub put_aside {
    my ($self, $exchange) = @_;
    my $stream = $exchange->{stream};
    # Coroutines have a credit each from the beginning.
    if ($self->{session}->{concurrent}) {
        $self->keep($exchange);
        weaken $self->{exchanges}{$stream} if !$exchange->{source} && !$exchange->{is_ending} && !$exchange->{is_pending};
        return 0;
    }
    $self->{exchanges}{$stream} = $exchange;
    # The answer's own source, or whoever will answer, keeps it: an answer that everybody has forgotten has to fail.
    weaken $self->{exchanges}{$stream} if !$exchange->{source} && !$exchange->{is_ending} && !$exchange->{arriving};
    return 0 if $self->{aside} >= ASIDE_MAX;
    $self->{aside}++;
    $self->write($self->{session}->credit(1));
    return 1;
}

sub taken_up {
    my ($self, $exchange) = @_;
    delete $self->{exchanges}{ $exchange->{stream} };
    return if !$exchange->{has_credit};
    $self->{aside}--;
    $self->write($self->{session}->credit(-1));
    return;
}

sub publish {
    my ($self, $stream, $channel, $body, %options) = @_;
    if (blessed $body && $body->isa('Parkade::Message')) {
        $options{content_type} //= $body->content_type;
        $body = $body->body;
    }
    Parkade::Checks::channel($channel);
    my ($unknown) = grep { $_ ne 'event' && $_ ne 'content_type' } keys %options;
    Carp::croak("unknown option $unknown; the options here are event, content_type") if defined $unknown;
    Parkade::Checks::event($options{event}) if defined $options{event};
    my $type = $options{content_type} // (ref $body ? 'application/json' : 'text/plain; charset=utf-8');
    Parkade::Checks::content_type($type);
    my $data = Parkade::Checks::message(ref $body ? Parkade::Checks::json_of('a message must be text or data', $body) : $body);
    my @event = defined $options{event} ? $options{event} : ();
    $self->write($self->{session}->publish($stream, "$channel", "$type", $data, @event));
    return;
}

sub enqueue {
    my ($self, $stream, @job) = @_;
    my $frame = $self->{session}->enqueue($stream, Parkade::Wire::payload(@job));
    $self->write($frame) if length $frame;
    return;
}

# Reads once while the application's code runs: what concerns the link is done, the rest is kept for later.
sub hear {
    my ($self) = @_;
    my $events = $self->_received or Parkade::Process::leave(0);
    for my $event (@$events) {
        if    ($event->[0] eq 'reply')  { $self->write($event->[1]) }
        elsif ($event->[0] eq 'pinged') { $self->write($self->{session}->pong($event->[1])) }
        else                            { push @{ $self->{kept} }, $event }
    }
    Parkade::Link::Loop::interrupt() if @{ $self->{kept} };
    return;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Link - runs an application for the requests of a link, one at a time

=head1 DESCRIPTION

Reads, runs, writes. Answers are written one by one, because an unanswered request counts as untouched for the core, which
gives it to another worker when this one dies.

An application that returns without an answer has put the request aside: it will answer later, from a timer, from another
request, or as its client reads. For each such request the core is granted one credit more. So code that blocks runs one
request at a time, and code that delays holds thousands; nobody has to say which it is.

Once an event loop is loaded (L<Parkade::Link::Loop>), its timers and sockets go on while requests are waited for.

=head1 METHODS

=head2 new($reader, $writer, $session)

=head2 check($application)

Dies if it declares too much.

=head2 exits(@exchanges)

Ends these and all others that have begun, and leaves.

=head2 exchange, keep($exchange)

The exchange of the code that is running; keeps one until it is closed.

=head2 session, reader, running

The session, the end that is read, and the stream for which the application's code is running (0 for none).

=head2 write($bytes), receive, is_readable

The two pipes. C<receive> waits for bytes, and returns none when the core has gone.

=head2 greet

Exchanges HELLO; returns the core's information, or nothing if the link ended.

=head2 is_wanted

Reads what arrived while the application was loading; whether the core still wants this worker.

=head2 serve($application)

Serves until the link ends; returns how (C<stopping>, C<violation>, C<gone>) and why. The application has the methods
C<ready> (for C<READY>), C<opened($exchange, $request)>, C<collected($exchange)>, C<called($exchange, $function, $state, $outcome)>,
C<given($exchange, $run)> and C<failed($exchange, $error)>.

=head2 watch(\@paths)

Folders and files of the application's code, which C<READY> tells.

=head2 begin($application), application($application), turn

What C<serve> does, for a program with a loop of its own; C<application> has another one run. C<turn> reads once, waiting if nothing is there, and runs what has
come. It returns how and why the link has ended, or nothing.

=head2 publish($stream, $channel, $text, %options)

Publishes a message on behalf of a stream, or of none (0). An array or a hash is published as JSON, a message as it came. Options: C<event>,
C<content_type>.

=head2 enqueue($stream, $id, $name, $arguments, \%options)

Stores a job on behalf of a stream.

=head2 current

The link of this process, if it is a worker.

=head2 leave_soon, leave

Ends the worker as soon as it holds nothing that it has begun; says so now, if that is the case.

=head2 put_aside($exchange), taken_up($exchange), hear

For L<Parkade::Exchange>.

=head2 keep_with_others(\@references), settle

Keeps what the references refer to only as long as the application's code does; an element is undefined afterwards.
C<settle> finds that out, when the code has returned.

=head2 take_over($ticket, $env, $response, $error), abandoned

For L<Parkade::Compiled>: a request that it has begun.

=cut
