package Gates;

# Gates at which a handler waits until the test opens them: see apps/gates.py.

use strict;
use warnings;

use Exporter    qw(import);
use Time::HiRes ();

our @EXPORT = qw(hold);

use constant { PAUSE => 0.003, SECONDS => 60 };

sub hold {
    my ($name) = @_;
    my $deadline = Time::HiRes::time() + SECONDS;
    Time::HiRes::sleep(PAUSE) until -e "$ENV{GATES}/$name" || Time::HiRes::time() >= $deadline;
    return;
}

1;
