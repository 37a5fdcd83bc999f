package Parkade::Job;

use strict;
use warnings;

use Carp                 ();
use Parkade::Checks      ();
use Parkade::Link        ();
use Parkade::MessagePack qw(bin);
use Parkade::Wait        ();
use Parkade::Wire        qw(JOB_VALUE_MAX);
use Time::HiRes          ();

our @CARP_NOT = qw(Parkade);

my %OPTIONS = map { ($_ => 1) } qw(delay at priority queue key);

# Stores a job; returns its handle.
sub enqueue {
    my ($class, $options, $name, @arguments) = @_;
    Parkade::Checks::job($name);
    my ($unknown) = grep { !$OPTIONS{$_} } keys %$options;
    Carp::croak("unknown option $unknown; the options are delay, at, priority, queue and key") if defined $unknown;
    my $encoded = Parkade::Checks::plain("a job's arguments must be plain data", [1, \@arguments, {}]);
    Carp::croak('the arguments of a job are larger than 524,288 bytes: pass a reference to larger data')
      if length $encoded > JOB_VALUE_MAX;
    my $told = _told($options);
    my $link = Parkade::Link->current or Carp::croak('only a worker of Parkade can enqueue jobs');
    my $self = bless { bytes => _new_id() }, $class;
    $link->enqueue($link->running, bin($self->{bytes}), "$name", bin($encoded), $told);
    return $self;
}

sub _told {
    my ($options) = @_;
    my %told = map { ($_ => $options->{$_}) } grep { defined $options->{$_} } keys %$options;
    Carp::croak('give either delay or at, not both') if exists $told{delay} && exists $told{at};
    $told{$_} = Parkade::Checks::seconds($_, $told{$_}) for grep { exists $told{$_} } qw(delay at);
    $told{priority} = Parkade::Checks::priority($told{priority}) if exists $told{priority};
    Parkade::Checks::queue_text($told{queue}) if exists $told{queue};
    Parkade::Checks::key($told{key})     if exists $told{key};
    $told{$_} = "$told{$_}" for grep { exists $told{$_} } qw(queue key);
    return \%told;
}

# A UUID of version 7: sorted by time, and hard to guess.
my $random;

sub _new_id {
    if (!$random) {
        open $random, '<:raw:unix', '/dev/urandom' or die "cannot read /dev/urandom: $!\n";
    }
    sysread($random, my $bytes, 10) == 10 or die "cannot read /dev/urandom\n";
    my $milliseconds = int(Time::HiRes::time() * 1000);
    my $id = substr(pack('Q>', $milliseconds), 2) . $bytes;
    substr $id, 6, 1, chr(0x70 | ord(substr $id, 6, 1) & 0x0f);
    substr $id, 8, 1, chr(0x80 | ord(substr $id, 8, 1) & 0x3f);
    return $id;
}

sub id {
    my ($self) = @_;
    return join '-', unpack 'H8 H4 H4 H4 H12', $self->{bytes};
}

sub result {
    my ($self, %options) = @_;
    my ($unknown) = grep { $_ ne 'timeout' } keys %options;
    Carp::croak("unknown option $unknown; the option here is timeout") if defined $unknown;
    my %told = defined $options{timeout} ? (timeout => Parkade::Checks::seconds('timeout', $options{timeout})) : ();
    return Parkade::Wait->new(result => bin($self->{bytes}), \%told);
}

package Parkade::Job::Failure;

use overload '""' => sub { $_[0]{text} }, fallback => 1;

sub new { my ($class, %members) = @_; return bless {%members}, $class }

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Job - a job that has been enqueued

=head1 SYNOPSIS

    my $job = enqueue write_log => $line;
    return $job->result(timeout => 30);

=head1 METHODS

=head2 enqueue(\%options, $name, @arguments)

Stores a job: the response of the running request is sent after that. Its name has 1 to 200 bytes, no control characters. The
application need not have the job itself: another worker may, also one in Python. Options:

=over

=item delay, at

When the job is due: in so many seconds, or so many seconds after 1970. Finite numbers of 0 or more; one of the two at most.

=item priority

A whole number from -1,000 to 1,000. Jobs with higher ones go first.

=item queue

The name of its queue: 1 to 200 bytes.

=item key

1 to 200 bytes. While a job of this name with this key is unfinished, that one is used instead.

=back

What is outside of these ranges is an exception, and no job is stored.

=head2 id

Its id, a UUID.

=head2 result(timeout => $seconds)

A wait: what the job has returned, as if a handler had returned it, or its address after the timeout. A function after it gets
the value, C<undef> after the timeout. It is not called if there will be no result; then the client gets 500 (the job failed for
good), 410 (it was cancelled) or 404 (there is none).

=head2 Parkade::Job::Failure->new(reason => $reason, text => $text, after => $seconds)

The exception of C<retry> and C<discard> in L<Parkade>: how an attempt has failed. As a string, it is its text.

=cut
