# The ways in which the bytes of a conversation come to a session and go from it.

use strict;
use warnings;

package Ways;

use Parkade::Link ();

package Whole;

sub new { my ($class, $session) = @_; return bless { session => $session }, $class }

# The events in bytes of the core.
sub take { my ($self, $data) = @_; return @{ $self->{session}->receive($data) } }

# Takes what the session writes.
sub write { return }

# Whether all of that has reached the core. Nothing comes or goes afterwards.
sub is_through { return 1 }

package Bytewise;

use parent -norequire, 'Whole';

sub take {
    my ($self, $data) = @_;
    my $size = length $data > 20_000 ? 977 : 1;    # enough splits of a long one, in a hundredth of the time
    my @events;
    push @events, $self->SUPER::take(substr $data, 0, $size, '') while length $data;
    return @events;
}

# Through the worker's own link and two pipes that hold a page each. Another process is the core: it reads a few bytes at
# a time.
package ThinLink;

use parent -norequire, 'Whole';
use POSIX ();
use constant { F_SETPIPE_SZ => 1031, PAGE => 4_096, RECEIVE_SIZE => 389, READ_SIZE => 97 };

sub new {
    my ($class, $session) = @_;
    my $self = $class->SUPER::new($session);
    pipe my $reader,  my $to_worker or die $!;
    pipe my $to_core, my $writer    or die $!;
    pipe my $told,    my $tells     or die $!;
    fcntl $_, F_SETPIPE_SZ, PAGE for $to_worker, $writer;
    $self->{core} = fork // die $!;
    if (!$self->{core}) {
        close $_ for $writer, $reader, $to_worker, $told;
        my $read = '';
        1 while sysread $to_core, $read, READ_SIZE, length $read;
        syswrite $tells, _digest($read);
        POSIX::_exit(0);
    }
    close $_ for $to_core, $tells;
    @$self{qw(to_worker told written)} = ($to_worker, $told, '');
    $self->{link} = Parkade::Link->new($reader, $writer, $session);
    $self->{link}{receive_size} = RECEIVE_SIZE;
    return $self;
}

sub take {
    my ($self, $data) = @_;
    my @events;
    while (length $data) {
        my $size = syswrite $self->{to_worker}, substr $data, 0, PAGE, '';
        while ($size) {
            my $piece = $self->{link}->receive;
            $size -= length $piece;
            push @events, $self->SUPER::take($piece);
        }
    }
    $self->write(map { $_->[1] } grep { $_->[0] eq 'reply' } @events);
    return @events;
}

sub write {
    my ($self, @data) = @_;
    for my $data (@data) {
        $self->{written} .= $data;
        $self->{link}->write($data);
    }
    return;
}

sub is_through {
    my ($self) = @_;
    close $self->{link}{writer};
    my $read = readline $self->{told};
    waitpid $self->{core}, 0;
    return $read eq _digest($self->{written});
}

sub _digest { return sprintf '%d %s', length $_[0], unpack '%32C*', $_[0] }

1;
