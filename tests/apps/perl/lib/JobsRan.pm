package JobsRan;

# A record of what jobs did, for the test to read: see apps/jobs_ran.py.

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(note);

sub note {
    my ($line) = @_;
    utf8::encode($line) if utf8::is_utf8($line);
    open my $file, '>>:unix', $ENV{RAN} // 'ran' or die "cannot write: $!\n";
    syswrite $file, "$line\n";
    return;
}

1;
