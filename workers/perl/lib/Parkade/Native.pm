package Parkade::Native;

use strict;
use warnings;

use JSON::PP             ();
use Parkade::App         ();
use Parkade::Attempt     ();
use Parkade::Coroutine   ();
use Parkade::Log         ();
use Parkade::Message     ();
use Parkade::MessagePack qw(bin decode encode);
use Parkade::PSGI::Input ();
use Parkade::Problem     ();
use Parkade::Request     ();
use Parkade::Response    ();
use Parkade::Trace       ();
use Parkade::Wire        qw(payload F_CLOSE F_ERROR F_RESULT INLINE_MAX JOB_VALUE_MAX);
use Scalar::Util         qw(blessed);

use constant TEXT_MAX => 4_096;    # characters of why an attempt has failed. Then: the beginning is kept

our $request;    # the one that a handler is answering
our $job;        # the attempt of a job that is running

my $json = JSON::PP->new->utf8->allow_nonref;

sub new {
    my ($class, %settings) = @_;
    return bless { is_dev => $settings{dev} }, $class;
}

sub ready {
    my $is_concurrent = Parkade::Coroutine::is_loaded();
    return { interface => 'native', Parkade::App::declared(), $is_concurrent ? (concurrent => \1) : () };
}

# Whether the core has to be told that the code begins: it takes the coroutines of requests for begun at once.
sub begins {
    my ($self, $name, $told) = @_;
    return $name ne 'opened' || !Parkade::App::is_async($told->[0]);
}

sub opened {
    my ($self, $exchange, $told) = @_;
    my ($number, $parameters, undef, $body, $head) = @$told;
    my ($code, $names) = Parkade::App::route($number);
    my ($input, $size);
    if (!defined $body) {
        ($input, $size) = Parkade::PSGI::Input::of_link(@$exchange{qw(link stream)});
        return $exchange->cancel('client_left') if !$input;
    }
    my %named;
    @named{@$names} = @$parameters;
    local $request = Parkade::Request->new(
        head => $head, parameters => \%named,
        defined $body ? (body => $body, size => length $body) : (input => $input, size => $size)
    );
    $exchange->{request} = $request;
    Parkade::Fault->throw(426, 'this address is for WebSockets: connect with a WebSocket client')
      if Parkade::App::is_socket($number) && !_asks_for_socket($request);
    $self->_answer_with($exchange, scalar $code->(@$parameters));
    return;
}

sub _asks_for_socket { my ($request) = @_; return $request->scheme =~ /\Awss?\z/ }

# What code has returned: at once, or, if it is a coroutine, in the end.
sub _answer_with {
    my ($self, $exchange, $value) = @_;
    my $settle = $exchange->{job} ? \&_result : \&answer;
    return $settle->($exchange, $value) if !Parkade::Coroutine::is_pending($value);
    $exchange->{is_pending} = 1;
    $exchange->on_cancel(sub { $value->cancel });
    $value->on_ready(sub {
        my ($future) = @_;
        return if $future->is_cancelled;
        $exchange->when_held(sub {
            my $went_well = eval { $settle->($exchange, scalar $future->get); 1 };
            $self->failed($exchange, $@) if !$went_well;
        });
    });
    return;
}

# What a coroutine awaited is there.
sub resumed {
    my ($self, $exchange, $outcome) = @_;
    local $request = $exchange->{request};
    local $job     = $exchange->{job};
    $job->go_on if $job;
    $exchange->resume($outcome);
    return;
}

# Answers a request with what code has returned: a wait, or anything that Parkade::Response takes.
sub answer {
    my ($exchange, $value, $headers) = @_;
    if (blessed $value && $value->isa('Parkade::Wait')) {
        my @parts = $value->parts(\&Parkade::Response::encoded, $headers);
        die "socket() answers only a request for a WebSocket\n"
          if $parts[0][0] eq 'socket' && $exchange->{request} && !_asks_for_socket($exchange->{request});
        $exchange->park(@parts);
        return;
    }
    return _closed($exchange, $value) if blessed $value && $value->isa('Parkade::Close');
    if (ref $value) {
        $value = Parkade::Response::of($value);
        if (my $pieces = $value->pieces) {
            $exchange->begin(@{ Parkade::Response::head($value) });
            $exchange->pull(sub { my $piece = $pieces->(); defined $piece ? Parkade::Response::piece($piece) : undef }, undef);
            return;
        }
    }
    my ($status, $told, $body) = @{ Parkade::Response::encoded($value) };
    $exchange->respond($status, $told, $$body);
    return;
}

sub _closed {
    my ($exchange, $close) = @_;
    die "only a sub that was called for a message of a WebSocket can close it\n" if !$exchange->{is_said};
    $exchange->end(F_CLOSE, payload(@$close{qw(code reason)}));
    return;
}

sub called {
    my ($self, $exchange, $function, $state, $outcome) = @_;
    my ($carried, $arguments) = @{ decode($state) };
    # An older worker carries 1.
    local $job = $carried && Parkade::Attempt->new($exchange->{stream}, ref $carried ? $carried : []);
    $exchange->{job}  = $job;
    $exchange->{is_said} = $outcome->[0] eq 'said';
    $exchange->{name} = $function . ($exchange->{is_said} ? ', called for a message of a WebSocket' : ' after a wait');
    return given_up($exchange, $outcome) if has_failed($outcome);
    no strict 'refs';
    die "there is no sub $function: has the application changed?\n" if !defined &$function;
    $self->_answer_with($exchange, scalar $function->(shown($outcome), @$arguments));
    return;
}

# What a function gets: nothing after a timer, undef after a timeout.
sub shown {
    my ($outcome) = @_;
    my ($name, @rest) = @$outcome;
    return () if $name eq 'elapsed';
    return undef if $name eq 'timeout' || $name eq 'pending';
    return _message(@rest) if $name eq 'message';
    return _said(@rest)    if $name eq 'said';
    return [map { my ($cursor, $type, $body, $event) = @$_; _message($cursor, $type, $body, 0, $event) } @{ $rest[1] }]
      if $name eq 'history';
    return _rows(@rest) if $name eq 'rows';
    return Parkade::Response::loaded($rest[1]) if $name eq 'result';
    return $rest[0];
}

sub _said {
    my ($is_text, $body) = @_;
    my $type = $is_text ? 'text/plain; charset=utf-8' : 'application/octet-stream';
    return Parkade::Message->new(body => $body, content_type => $type, is_said => 1);
}

# A statement that has no columns is told as the core tells it to clients.
sub _rows {
    my ($columns, $command, $count, $body) = @_;
    my $rows = $json->decode($body);
    return @$columns || ref $rows ne 'ARRAY' || @$rows ? $rows : { command => $command, rows => $count };
}

sub _message {
    my ($cursor, $content_type, $body, $gap, $event) = @_;
    return Parkade::Message->new(
        cursor => $cursor, content_type => $content_type, body => $body, gap => $gap ? 1 : 0, event => $event
    );
}

my %NO_RESULT = (
    dead      => [500, 'application', 'the job failed; the log says why'],
    cancelled => [410, 'client',      'the job was cancelled'],
    missing   => [404, 'client',      'no such job; it may have been deleted'],
);

sub has_failed { my ($outcome) = @_; return $outcome->[0] =~ /\A(?:failed|refused|no result)\z/ }

# The text, and what the client is told: a status, whose fault it is, and why.
sub _why {
    my ($outcome) = @_;
    my ($name, @rest) = @$outcome;
    return (@rest[0, 1], 'server', $rest[0]) if $name eq 'refused';
    return @rest[2, 4, 5, 6] if $name eq 'failed';
    my $told = $NO_RESULT{ $rest[1] } || [500, 'application', 'the job gave no result'];
    return (length $rest[2] // '' ? $rest[2] : $told->[2], @$told);
}

sub failure_text { my ($outcome) = @_; my ($text) = _why($outcome); return $text }

# A wait that failed: the client gets what it would get from the core alone.
sub given_up {
    my ($exchange, $outcome) = @_;
    my ($text, $status, $fault, $detail) = _why($outcome);
    Parkade::Log::record('error', _name($exchange) . ": the wait has failed: $text");
    return _attempt_failed($exchange, $text) if $exchange->{job};
    my %told = (detail => $detail, fault => $fault, $outcome->[0] eq 'failed' ? (effect => $outcome->[4]) : ());
    $exchange->respond(Parkade::Problem::response($exchange->{request}, $status, %told));
    return;
}

sub given {
    my ($self, $exchange, $run) = @_;
    my ($id, $name, $attempt, $deadline, $arguments, $request_id, $traceparent) = @$run;
    my @told = ($id, $name, $attempt, $deadline, $request_id, $traceparent);
    local $job = $exchange->{job} = Parkade::Attempt->new($exchange->{stream}, \@told);
    $exchange->{name} = "job $name, attempt $attempt";
    my $code = Parkade::App::job($name);
    return $exchange->end(F_ERROR, payload('unknown', "there is no job $name")) if !$code;
    my ($version, $positional, $named) = @{ decode($arguments) };
    $self->_answer_with($exchange, scalar $code->(@$positional, %{ $named || {} }));
    return;
}

sub _result {
    my ($exchange, $value) = @_;
    if (blessed $value && $value->isa('Parkade::Wait')) {
        die "a job returned a wait without then: give it a function that continues the job\n" if !$value->{then};
        $exchange->park($value->parts(\&Parkade::Response::encoded));
        return;
    }
    my $encoded = Parkade::Response::stored($value);
    die "the result of a job is larger than 524,288 bytes: return a reference to larger data\n"
      if length $encoded > JOB_VALUE_MAX;
    $exchange->end(F_RESULT, payload(bin($encoded)));
    return;
}

sub failed {
    my ($self, $exchange, $error) = @_;
    return if $exchange->{closed};
    return _closed($exchange, $error) if $exchange->{is_said} && blessed $error && $error->isa('Parkade::Close');
    if (blessed $error && $error->isa('Parkade::Fault')) {
        my %told = (detail => $error->{detail}, fault => 'client');
        $exchange->respond(Parkade::Problem::response($exchange->{request}, $error->{status}, %told));
        return;
    }
    if ($exchange->{job}) {
        if (blessed $error && $error->isa('Parkade::Job::Failure')) {
            my @after = $error->{reason} eq 'retry' ? $error->{after} : ();
            $exchange->end(F_ERROR, payload($error->{reason}, substr("$error", 0, TEXT_MAX), @after));
            return;
        }
        my $trace = Parkade::Trace->of($error);
        Parkade::Log::failed($exchange->{name}, $trace);
        return _attempt_failed($exchange, $trace->text);
    }
    my $outcome = !$self->{is_dev} && Parkade::Coroutine::failed_wait($error);
    return given_up($exchange, $outcome) if $outcome;
    my $trace = Parkade::Trace->of($error);
    Parkade::Log::failed(_name($exchange), $trace, _asked($exchange));
    return $exchange->fail($trace->text) if $exchange->{begun} || !$self->{is_dev};
    require Parkade::ErrorPage;
    my $env = $exchange->{request} ? $exchange->{request}->env : $exchange->{env};
    $exchange->respond(Parkade::ErrorPage::response($trace, $env));
    return;
}

# What the log calls that of which something is said, and which members a record of it has.
sub _name {
    my ($exchange) = @_;
    return $exchange->{name} if defined $exchange->{name};
    my %asked = _asked($exchange);
    return %asked ? "$asked{method} $asked{path}" : 'a request';
}

sub _asked {
    my ($exchange) = @_;
    my $env = ($exchange->{request} || return)->env;
    return (method => $env->{REQUEST_METHOD}, path => $env->{REQUEST_URI} =~ s/[?].*//sr);
}

sub _attempt_failed {
    my ($exchange, $text) = @_;
    chomp $text;
    $exchange->end(F_ERROR, payload('application', substr $text, 0, TEXT_MAX));
    return;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Native - an application of Parkade's own interface, as a link runs it

=head1 METHODS

=head2 new(dev => $boolean), ready, begins($event, @told), opened($exchange, $request), called($exchange, $function, $state, $outcome), given($exchange, $run), resumed($exchange, $outcome), failed($exchange, $error)

What L<Parkade::Link> calls.

=head2 shown($outcome)

What a function gets: nothing after a timer, C<undef> after a timeout.

=head2 has_failed($outcome), failure_text($outcome)

Whether a wait has failed, or the job that it was for has no result; and why.

=head2 answer($exchange, $value, \@headers), given_up($exchange, $outcome)

Answer a request with what code has returned, or with the reason why its wait failed.

=cut
