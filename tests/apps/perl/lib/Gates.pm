package Gates;

# Gates at which a handler waits until the test opens them: see apps/gates.py.

use strict;
use warnings;

use Exporter    qw(import);
use Time::HiRes ();

our @EXPORT = qw(hold monotonic);

use constant { PAUSE => 0.003, SECONDS => 60 };

# Some tests set the wall clock.
sub monotonic { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }

sub hold {
    my ($name) = @_;
    my $deadline = monotonic() + SECONDS;
    Time::HiRes::sleep(PAUSE) until -e "$ENV{GATES}/$name" || monotonic() >= $deadline;
    return;
}

1;
