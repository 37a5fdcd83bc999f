# What apps/neighbours.py does, in Perl: jobs that end their worker or occupy it, next to good ones.

use strict;
use warnings;

use FindBin ();
use POSIX   ();
use lib "$FindBin::Bin/lib";
use JobsRan;
use Parkade;
use Time::HiRes ();

jobs_at '/jobs';

# Good ones

job good => sub { my ($line) = @_; note("$line " . job->attempt); return }, retries => 0;
job good_behind_a_wait => sub {
    my ($line) = @_;
    return after(0.05)->then(\&come_back, "$line " . job->attempt);
}, retries => 0;
sub come_back { my ($line) = @_; note($line); return }

# Jobs that end their worker, at once or because it is killed

sub begin {
    my ($line) = @_;
    note("bad $line $$ " . Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()));
    return;
}

sub loop_for_ever { my ($line) = @_; begin($line); 1 while 1 }

job leave      => sub { my ($line) = @_; begin($line); POSIX::_exit(1) },  retries => 0;
job crash      => sub { my ($line) = @_; begin($line); kill SEGV => $$ },   retries => 0;
job loop       => \&loop_for_ever,                                          retries => 0;
job loop_soon  => \&loop_for_ever,                                          retries => 0, deadline => 0.5;
# A signal ends a sleep: the one that asks for the stack, for example.
job sleep_soon => sub { my ($line) = @_; begin($line); sleep 3_600 while 1 }, retries => 0, deadline => 0.5;

# Requests

get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };

post '/burst' => sub {
    my $burst = request->json;
    my $place = 0;
    return [map { (enqueue $_ => "$burst->{line} " . $place++)->id } @{ $burst->{jobs} }];
};

1;
