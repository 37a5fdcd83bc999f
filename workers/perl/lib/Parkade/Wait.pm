package Parkade::Wait;

use strict;
use warnings;

use B                    ();
use Carp                 ();
use Parkade::Checks      ();
use Parkade::Headers     ();
use Parkade::MessagePack qw(bin);
use Parkade::Response    ();
use Parkade::Wire        qw(INLINE_MAX);

our @CARP_NOT = qw(Parkade Parkade::Channel);

use constant {
    STATE_MAX    => 65_536,    # bytes of what a function gets after a wait. Then: it dies
    FUNCTION_MAX => 1_024,     # bytes of its name. Then: it dies
};

# Future cancels what is awaited by calling it.
use overload '&{}' => sub { my ($self) = @_; return sub { $self->future->cancel } }, bool => sub { 1 }, fallback => 1;

# What Future::AsyncAwait asks of what is awaited.
for my $method (qw(IS_READY IS_CANCELLED ON_READY ON_CANCEL CHAIN_CANCEL GET CLONE)) {
    my $name = "AWAIT_$method";
    no strict 'refs';
    *$name = sub { my ($self, @rest) = @_; return $self->future->$name(@rest) };
}

sub future {
    my ($self) = @_;
    require Parkade::Coroutine;
    return $self->{future} //= Parkade::Coroutine::future_of($self);
}

sub new {
    my ($class, @wait) = @_;
    return bless { wait => \@wait }, $class;
}

# A timer's answer is known from the beginning.
sub answer_with {
    my ($self, $answer) = @_;
    $self->{answer} = $answer;
    return $self;
}

sub then {
    my ($self, $code, @state) = @_;
    Carp::croak('a stream cannot have a function after it: it ends when its client leaves') if $self->{wait}[0] eq 'stream';
    # The stream that calls the function does not tell whether it is for a request or for a job.
    my $job   = $Parkade::Native::job;
    my $told  = [$job ? $job->carried : undef, \@state];
    my $state = Parkade::Checks::plain('a function after a wait can only be given plain data', $told);
    Carp::croak('a function after a wait can be given at most 65,536 bytes') if length $state > STATE_MAX;
    my $name = name_of($code);
    $self->{then} = ['call', $name, bin($state), _is_async($name) ? 'async' : ()];
    return $self;
}

sub _is_async {
    my ($name) = @_;
    no strict 'refs';
    return $INC{'Future/AsyncAwait.pm'} && Parkade::Coroutine::is_async(\&$name);
}

sub headers {
    my ($self, @headers) = @_;
    my $told = eval { Parkade::Headers::added(\@headers, \&Parkade::Response::bytes_of) };
    Carp::croak($@ =~ s/\n\z//r) if !$told;
    push @{ $self->{headers} }, @$told;
    return $self;
}

# The name by which any worker finds the function, also one that starts later.
sub name_of {
    my ($code) = @_;
    my $name = $code;
    if (ref $code) {
        my $symbol = B::svref_2object($code)->GV;
        $name = $symbol->STASH->NAME . '::' . $symbol->NAME;
    }
    Carp::croak('only a named sub can be called after a wait: in another worker, an anonymous one cannot be found')
      if !defined $name || $name =~ /__ANON__/;
    $name = "main::$name" if $name !~ /::/;
    Carp::croak("there is no sub $name") if !defined &$name;
    utf8::encode(my $bytes = $name);
    Carp::croak("the name of $name is too long") if length $bytes > FUNCTION_MAX;
    return $name;
}

# The two parts of a PARK. $headers are those that other code has added to the response.
sub parts {
    my ($self, $encode, $headers) = @_;
    my $wait = $self->{wait};
    return ($wait, $self->{then}) if $self->{then};
    my $response = $wait->[0] eq 'timer' ? _of_timer($encode->($self->{answer})) : undef;
    my @added = (@{ $self->{headers} || [] }, @{ $headers || [] });
    return ($wait, ['answer', $response]) if !@added;
    if ($response) {
        push @{ $response->[1] }, @added;
        return ($wait, ['answer', $response]);
    }
    return ($wait, ['answer', undef, [undef, \@added]]);
}

sub _of_timer {
    my ($response) = @_;
    die 'the answer after a timer has at most ' . INLINE_MAX . " bytes: give a larger one in a sub, with then\n"
      if $response && length ${ $response->[2] } > INLINE_MAX;
    return $response;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Wait - what an answer waits for

=head1 SYNOPSIS

    return after(2)->then(\&render, title => 'Later');
    return channel('news')->next(timeout => 30);

=head1 DESCRIPTION

A handler returns it. The core waits; the worker is free. Without C<then>, the core answers alone: with the message, the
rows, the result, or, for a timer, with what was given for it.

=head1 METHODS

=head2 then($sub, @state)

Calls a named sub when the wait is over, in whichever worker is free. It gets the outcome (for a timer nothing) and then
C<@state>, which is plain data of at most 64 KiB. What it returns is the answer, or another wait.

=head2 headers($name, $value, ...)

Headers for the answer that the core gives alone. Values are text or numbers; C<undef> is empty.

=head2 future, AWAIT_IS_READY, AWAIT_IS_CANCELLED, AWAIT_ON_READY, AWAIT_ON_CANCEL, AWAIT_CHAIN_CANCEL, AWAIT_GET, AWAIT_CLONE

In a worker, the L<Future> that C<await> awaits: see L<Parkade::Coroutine>.

=head2 new(@wait), answer_with($value), name_of($sub), parts($encode, \@headers)

For the modules that make and send waits.

=cut
