package Parkade::PSGI;

use strict;
use warnings;

use IO::Handle                 ();
use Parkade::Call              ();
use Parkade::Compiled          ();
use Parkade::Exchange          ();
use Parkade::Link::Loop        ();
use Parkade::Log               ();
use Parkade::Parked            ();
use Parkade::PSGI::Environment ();
use Parkade::PSGI::Input       ();
use Parkade::PSGI::Response    ();
use Parkade::PSGI::Writer      ();
use Parkade::Trace             ();
use Scalar::Util                qw(weaken);

sub new {
    my ($class, $application, %settings) = @_;
    die "a PSGI application must be a code reference\n" if !_is_code($application);
    # In bytes, as PSGI has paths.
    utf8::encode(my $root = $settings{root_path} // '');
    return bless { application => $application, is_dev => $settings{dev}, root => $root }, $class;
}

sub _is_code {
    my ($value) = @_;
    return ref $value eq 'CODE' || ref $value && defined overload::Method($value, '&{}');
}

sub ready {
    my %declared = $INC{'Parkade/App.pm'} ? Parkade::App::declared() : ();
    return { %declared, interface => 'psgi', fallback => \1, stream => \1 };
}

# What is the same in every request.
my %SAME = (
    'psgi.version'          => [1, 1],
    'psgi.multithread'      => !!0,
    'psgi.multiprocess'     => !!1,    # also with one worker: during a reload there are two
    'psgi.run_once'         => !!0,
    'psgi.streaming'        => !!1,
    'psgix.input.buffered'  => !!1,
    'psgix.cleanup'         => !!1,
    'psgix.harakiri'        => !!1,
    'psgi.errors'           => \*STDERR,
    'parkade.park'          => \&Parkade::Parked::response,
);

# The same loop in C, for usual requests and responses; false if there is none.
sub compiled {
    my ($self, $link, %members) = @_;
    my $application = $self->{application};
    return Parkade::Compiled->loop(
        $link, %members,
        application => $self,
        code        => ref $application eq 'CODE' ? $application : sub { $application->(@_) },
        make_ticket => \&_ticket,
        same        => [%SAME],
        root        => $self->{root},
        waits       => Parkade::Parked::waits(),
    );
}

# What the environments of that loop have of their own: the number of the stream, and its exchange as soon as there is one.
sub _ticket {
    my ($link) = @_;
    my $ticket = [0, undef];
    return (
        $ticket,
        sub {
            my ($stream, $exchange) = @$ticket;
            $exchange = $ticket->[1] = Parkade::Exchange->new($link, $stream) if !$exchange && $link->running == $stream;
            $exchange->on_cancel($_[0]) if $exchange;
        },
        sub { $link->publish($ticket->[0], @_) },
    );
}

# The exchange of such a request, which only answering it keeps from now on.
sub taken_over {
    my ($self, $link, $ticket, $env) = @_;
    my $exchange = $ticket->[1] || Parkade::Exchange->new($link, $ticket->[0]);
    weaken($ticket->[1] = $exchange);
    $self->_name($exchange, $env);
    return $exchange;
}

sub opened {
    my ($self, $exchange, $request) = @_;
    my $body = $request->[3];
    return $self->_answer($exchange, $request, Parkade::PSGI::Input::of_body($body)) if defined $body;
    return $exchange->collect(
        Parkade::PSGI::Input->new(@$exchange{qw(link stream)}),
        sub { $self->_answer($exchange, $request, @_) },
    );
}

sub collected {
    my ($self, $exchange) = @_;
    return $exchange->collected;
}

sub _answer {
    my ($self, $exchange, $request, @body) = @_;
    my $env = $self->_environment($exchange, $request, @body);
    $self->_name($exchange, $env);
    return $self->answered($exchange, $env, scalar $self->{application}->($env));
}

sub _name {
    my ($self, $exchange, $env) = @_;
    $exchange->{name} = join ' ', map { $_ // '' } @$env{qw(REQUEST_METHOD PATH_INFO)};
    # For the page of an exception. The environment itself ends with the application's code, and so do its destructors.
    $exchange->{env} = { map { ($_ => $env->{$_}) } grep { /\A(?:HTTP_|CONTENT_|REQUEST_)/ && !ref $env->{$_} } keys %$env }
      if $self->{is_dev};
    return;
}

sub answered {
    my ($self, $exchange, $env, $response) = @_;
    my $link = $exchange->{link};
    if (ref $response eq 'ARRAY') {
        Parkade::PSGI::Response::send_to($exchange, $response);
        $self->after($link, $env) if $exchange->{closed};
        $exchange->on_close(sub { $self->after($link, $env) }) if !$exchange->{closed};
        return;
    }
    if (ref $response eq 'CODE') {
        $self->_delay($exchange, $env, $response);
        return;
    }
    my $kind = defined $response ? ref $response || qq{the text "$response"} : 'undef';
    die "the application must return an array or a code reference, not $kind\n";
}

sub _environment {
    my ($self, $exchange, $request, $input, $size) = @_;
    my ($link, $stream) = @$exchange{qw(link stream)};
    my (undef, undef, $deadline, undef, $head) = @$request;
    my $env = Parkade::PSGI::Environment::of_head($head);
    _below($env, $self->{root}) if length $self->{root};
    $env->{CONTENT_LENGTH} = $size if $size || exists $env->{CONTENT_LENGTH};
    @$env{ keys %SAME } = values %SAME;
    $env->{'psgi.input'}             = $input;
    $env->{'psgi.nonblocking'}       = !!Parkade::Link::Loop::is_loaded();
    $env->{'psgix.cleanup.handlers'} = [];
    $env->{'parkade.deadline'}       = $deadline if defined $deadline;
    weaken(my $told = $exchange);    # whoever keeps the environment alone will not answer
    $env->{'parkade.on_cancel'}      = sub { $told->on_cancel($_[0]) if $told };
    $env->{'parkade.publish'}        = sub { $link->publish($stream, @_) };
    return $env;
}

# Some proxies leave the prefix in the path and some remove it.
sub _below {
    my ($env, $root) = @_;
    $env->{SCRIPT_NAME} = $root;
    $env->{PATH_INFO} =~ s{\A\Q$root\E(?=/|\z)}{};
    return;
}

# What the server does after the response.
sub after {
    my ($self, $link, $env) = @_;
    $link->leave_soon if $env->{'psgix.harakiri.commit'};
    for my $handler (@{ $env->{'psgix.cleanup.handlers'} || [] }) {
        my $fault = Parkade::Call::fault($handler, $env);
        Parkade::Log::failed('in a cleanup handler', $fault) if defined $fault;
    }
    return;
}

sub _delay {
    my ($self, $exchange, $env, $code) = @_;
    my $is_used;
    my $link     = $exchange->{link};
    my $handlers = $env->{'psgix.cleanup.handlers'};
    my @kept     = ($env, $handlers);
    # Not what keeps the exchange: see DESTROY.
    $exchange->on_close(sub { $self->after($link, $kept[0] // { 'psgix.cleanup.handlers' => $kept[1] }) });
    $code->(
        sub {
            my ($response) = @_;
            die "the responder of a request was called a second time\n" if $is_used++;
            my $writer;
            return $writer if eval { $writer = _respond($exchange, $response); 1 };
            my $error = $@;
            $exchange->fail("$error");
            die $error;
        }
    );
    # An environment takes some kilobytes, as much as all the rest of a delayed response.
    my $is_needed = $env->{'psgix.harakiri.commit'} || (ref $handlers ? @$handlers : 0);
    $link->keep_with_others(\@kept) if !$is_needed && !$exchange->{closed};
    return;
}

sub _respond {
    my ($exchange, $response) = @_;
    if (ref $response ne 'ARRAY' || @$response < 2 || @$response > 3) {
        die "the responder of a request takes an array of two or three elements\n";
    }
    if (@$response == 3) {
        Parkade::PSGI::Response::send_to($exchange, $response);
        return;
    }
    Parkade::PSGI::Response::begin($exchange, $response);
    return Parkade::PSGI::Writer->new($exchange);
}

sub failed {
    my ($self, $exchange, $error) = @_;
    return Parkade::Native::failed($self, $exchange, $error) if $INC{'Parkade/Native.pm'};
    my $trace = Parkade::Trace->of($error);
    Parkade::Log::failed($exchange->{name} // 'a request', $trace);
    return if $exchange->{closed};
    return $exchange->fail($trace->text) if $exchange->{begun} || !$self->{is_dev};
    require Parkade::ErrorPage;
    $exchange->respond(Parkade::ErrorPage::response($trace, $exchange->{env}));
    return;
}

# Functions after waits, and jobs: those of an application that uses Parkade.
sub called { shift; return Parkade::Native->called(@_) }
sub given  { shift; return Parkade::Native->given(@_) }

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::PSGI - an application of PSGI as a link runs it

=head1 DESCRIPTION

PSGI 1.1, with responses as arrays, file handles and objects, delayed responses and writers, and the extensions
C<psgix.input.buffered>, C<psgix.cleanup> and C<psgix.harakiri>. There is no C<psgix.io>: the worker has no socket.

A request that is answered later does not keep its worker from running others. C<psgi.nonblocking> is true once AnyEvent is loaded.

The environment has in addition

=over

=item parkade.request_id

What the log and the response call the request.

=item parkade.deadline

The seconds that were left when it came; missing if there is no limit.

=item parkade.on_cancel

A code reference. C<< $env->{'parkade.on_cancel'}->(sub { my ($reason) = @_; ... }) >> has the code called when the client
leaves before it has the answer, or when the request is cancelled for another reason (C<client_left>, C<deadline>,
C<operator>, C<stopping>). It is not called once the request has been parked by C<park(...)>: no worker holds it then, and the core
ends the wait by itself, down to the statement in the database.

=item parkade.park

A code reference: the response that it makes of a wait (L<Parkade::Wait>) is returned instead of another response, and the worker
is free.

=item parkade.publish

A code reference: C<< $env->{'parkade.publish'}->($channel, $text) >>, with C<< (event => $name, content_type => $type) >>
after that if needed. The message is published before the client gets the response.

=back

=head1 METHODS

=head2 new($application, dev => $boolean, root_path => $prefix)

The prefix is C<SCRIPT_NAME>, whether or not it is in the paths of requests.

=head2 ready, opened($exchange, $request), collected($exchange), failed($exchange, $error), called, given

What L<Parkade::Link> calls.

=head2 compiled($link, %members), taken_over($link, $ticket, $env), answered($exchange, $env, $response), after($link, $env)

The same in C (L<Parkade::Compiled>), and what that leaves to Perl: its exchange, the response of the application, and what
is to be done after it.

=cut
