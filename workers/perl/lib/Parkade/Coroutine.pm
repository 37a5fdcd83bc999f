package Parkade::Coroutine;

use strict;
use warnings;

use B            ();
use Carp         ();
use Parkade::Link ();
use Scalar::Util qw(blessed);

# What is wrong with a wait is told of the line that awaits it.
our @CARP_NOT = qw(Parkade::Wait);

use constant FAILED => 'parkade';    # the category of a future's failure

# Whether the application has loaded what makes `await` a word of Perl. It is not loaded from here: most have no need of it.
sub is_loaded { return exists $INC{'Future/AsyncAwait.pm'} }

# Whether code is an `async sub`, which tells nobody but by the operation at its end.
sub is_async {
    my ($code) = @_;
    return 0 if !is_loaded() || ref $code ne 'CODE';
    return _has_operation(B::svref_2object($code)->ROOT, 'leaveasync');
}

sub _has_operation {
    my ($operation, $name) = @_;
    return 0 if !$$operation;
    return 1 if $operation->name eq $name;
    return 0 if !($operation->flags & B::OPf_KIDS);
    for (my $inner = $operation->first; $$inner; $inner = $inner->sibling) {
        return 1 if _has_operation($inner, $name);
    }
    return 0;
}

# Whether code has returned what will be its value later.
sub is_pending {
    my ($value) = @_;
    return ref $value && is_loaded() && blessed $value && $value->isa('Future');
}

# The future of a wait that the code which is running awaits: its request or its job is parked, and held again after it.
sub future_of {
    my ($wait) = @_;
    Carp::croak('a stream cannot be awaited: return it to the client') if $wait->{wait}[0] eq 'stream';
    Carp::croak('a wait with then cannot be awaited: return it') if $wait->{then};
    my $link     = Parkade::Link->current or Carp::croak('only a worker of Parkade can await a wait');
    my $exchange = $link->exchange        or Carp::croak('only a request or a job can await a wait, and none is running here');
    my $future   = Future->new;
    my ($parts)  = $wait->parts(sub { undef });
    $exchange->await(
        $parts,
        sub {
            my ($outcome) = @_;
            if (Parkade::Native::has_failed($outcome)) {
                my $text = Parkade::Native::failure_text($outcome);
                return $future->fail("the wait has failed: $text", FAILED, @$outcome);
            }
            my @value = Parkade::Native::shown($outcome);
            $future->done(@value ? @value : undef);
        }
    );
    $future->on_cancel(sub { $exchange->unpark });
    return $future;
}

# The outcome of a wait that failed, if that is what an exception is about.
sub failed_wait {
    my ($error) = @_;
    return if !blessed $error || !$error->isa('Future::Exception') || $error->category ne FAILED;
    return [$error->details];
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Coroutine - await, with Future::AsyncAwait

=head1 SYNOPSIS

    use Future::AsyncAwait;
    use Parkade;

    get '/page' => async sub {
        my $rows = await query('select * from sales');
        await after(0.5);
        return html(scalar @$rows);
    };

=head1 DESCRIPTION

An application that loads L<Future::AsyncAwait> may await any wait but a stream, in requests and in jobs. While it waits, its
worker runs other requests, and the core holds the request; the lexical variables of the sub stay in the worker. So requests
that await are lost when their worker dies, unlike those that wait with C<then>.

A wait that fails is an exception, a L<Future::Exception>: its C<details> are what became of it. For a query: C<failed>, the
reason in a word or two, the SQLSTATE (or C<undef>), a text for the log, what became of its changes (C<none>, C<cancelled>,
C<completed> or C<unknown>), and the status, the fault and the text that a client gets if nobody catches it.

A sub awaits one of Parkade's waits at a time. It may also await futures of other modules, with an event loop.

=head1 FUNCTIONS

=head2 is_loaded, is_async($code), is_pending($value)

Whether there is C<await> in this process; whether code is an C<async sub>; whether code has returned a future.

=head2 future_of($wait), failed_wait($exception)

The future of a wait: the request or the job that is running is parked. The outcome of a wait that failed, if the exception is
about one.

=cut
