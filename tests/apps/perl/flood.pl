# What apps/flood.py does, in Perl.

use strict;
use warnings;

use Parkade;

use constant LATER => 1_000_000;    # seconds: they never run

jobs_at '/jobs';

job child => sub { };

sub pour {
    my ($count, $bytes) = @_;
    my $load = 'x' x ($bytes // 0);
    enqueue { delay => LATER }, child => $_, $load for 0 .. $count - 1;
    return;
}

job flood => sub { pour(@_); return job->attempt }, retries => 1;

post '/flood/{count:int}' => sub { pour(@_); return 'poured' };
post '/enqueue/{job}/{count:int}/{bytes:int}' => sub {
    my ($job, $count, $bytes) = @_;
    return enqueue($job => $count, $bytes)->id;
};
get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };

1;
