package Parkade::Attempt;

use strict;
use warnings;

use Carp                 ();
use Parkade::Link        ();
use Parkade::MessagePack qw(bin float);
use Parkade::Wire        qw(payload);
use Time::HiRes          ();

use constant PROGRESS_TEXT_MAX => 1_000;    # bytes. Then: the beginning is kept

# $state is what a wait carries to the worker that continues the job.
sub new {
    my ($class, $stream, $state) = @_;
    my $self = bless { stream => $stream }, $class;
    @$self{qw(id name attempt left request_id traceparent)} = @$state;
    $self->{since} = _now();
    return $self;
}

sub _now { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }

sub carried {
    my ($self) = @_;
    return [bin($self->{id}), "$self->{name}", $self->{attempt} + 0, $self->deadline, @$self{qw(request_id traceparent)}];
}

sub id {
    my ($self) = @_;
    return join '-', unpack 'H8 H4 H4 H4 H12', $self->{id};
}

sub name        { return $_[0]{name} }
sub attempt     { return $_[0]{attempt} }
sub request_id  { return $_[0]{request_id} }
sub traceparent { return $_[0]{traceparent} }

sub deadline {
    my ($self) = @_;
    return undef if !defined $self->{left};
    my $left = $self->{left} - ($self->{is_paused} ? 0 : _now() - $self->{since});
    return $left > 0 ? $left : 0;
}

# Time in a wait does not count.
sub pause {
    my ($self) = @_;
    $self->{left} = $self->deadline;
    $self->{is_paused} = 1;
    return;
}

sub go_on {
    my ($self) = @_;
    @$self{qw(is_paused since)} = (0, _now());
    return;
}

sub cancelled {
    my ($self) = @_;
    my $link = Parkade::Link->current;
    $link->hear while $link->is_readable;
    return $link->session->{cancelled}{ $self->{stream} } ? 1 : 0;
}

sub progress {
    my ($self, $fraction, $text) = @_;
    Carp::croak('a fraction must be a number between 0 and 1')
      if defined $fraction && !($fraction =~ /\A[0-9]*\.?[0-9]+(?:e-?[0-9]+)?\z/i && $fraction <= 1);
    my $beginning = substr $text // '', 0, PROGRESS_TEXT_MAX;
    chop $beginning while _bytes($beginning) > PROGRESS_TEXT_MAX;
    my $link = Parkade::Link->current;
    my $told = payload(defined $fraction ? float($fraction) : undef, $beginning);
    my $frame = $link->session->progress($self->{stream}, $told);
    $link->write($frame) if length $frame;
    return;
}

sub _bytes { my ($text) = @_; utf8::encode($text); return length $text }

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Attempt - an attempt of a job, as the job's own code sees it

=head1 SYNOPSIS

    job import_page => sub {
        my ($page) = @_;
        for my $row (1 .. 100) {
            return if job->cancelled;
            job->progress($row / 100, "row $row");
            ...
        }
    };

=head1 METHODS

=head2 new($stream, \@state), carried, pause, go_on

For L<Parkade::Native>: what a wait carries, and when a coroutine waits.

=head2 id, name, attempt

The id of the job, which is the same in each attempt; its name; 1 the first time.

=head2 request_id, traceparent

Lead back to the request that enqueued the job: its id, and its trace (W3C Trace Context) or C<undef>.

=head2 deadline

The seconds left for this attempt, 0 when they are over; C<undef> without a deadline. Time in a wait does not count.

=head2 cancelled

Whether the job should end: it was cancelled, its deadline has passed, or the server is stopping. Code that takes long should
ask from time to time.

=head2 progress($fraction, $text)

Reports progress to those who follow the job: a fraction between 0 and 1 (C<undef>: unknown), and what the job is doing (the
first 1,000 bytes).

=cut
