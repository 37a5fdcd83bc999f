# An application that changes what it shares with its worker: signals, handles, variables of Perl, its folder, its processes.

use strict;
use warnings;

use POSIX       ();
use Time::HiRes ();

my ($alarms, $deaths) = (0, 0);

$SIG{__DIE__}  = sub { $deaths++ };
$SIG{__WARN__} = sub { print STDERR "its own warning: @_" };
$SIG{CHLD}     = 'IGNORE';
$SIG{PIPE}     = 'DEFAULT';
$SIG{ALRM}     = sub { $alarms++ };

($,, $\, $", $;) = ('<comma>', '<line>', '<list>', '<index>');
undef $/;

my $text = ['Content-Type', 'text/plain'];

my %pages = (
    alarms => sub { Time::HiRes::ualarm(2_000, 2_000); return 'alarmed' },
    calm   => sub { Time::HiRes::ualarm(0); return $alarms > 0 ? 'calm' : 'there was no alarm' },
    warns  => sub { warn 'careful'; return 'warned' },
    raises => sub { die "on purpose\n" },
    caught => sub { return eval { die "inside\n" } ? 'never' : "caught $@" },
    folder => sub { chdir '/'; return 'elsewhere' },
    closes => sub { close STDIN; close STDOUT; POSIX::close($_) for 0, 1; return 'closed' },
    select => sub { open my $null, '>', '/dev/null'; select $null; $| = 1; return 'selected' },
    ends   => sub { my $child = fork // die $!; POSIX::_exit(0) if !$child; return 'a child has ended' },
    exits  => sub { my $child = fork // die $!; exit 0 if !$child; waitpid $child, 0; return 'a child has called exit' },
    body   => sub { my ($env) = @_; my $input = $env->{'psgi.input'}; return scalar readline $input },
);

sub {
    my ($env) = @_;
    my ($page) = $env->{PATH_INFO} =~ m{\A/(\w+)};
    return [200, $text, [$pages{$page}->($env)]];
};
