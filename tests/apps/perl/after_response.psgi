# The same as after_response.py: a handler of psgix.cleanup waits at a gate.

use strict;
use warnings;

use FindBin ();
use lib "$FindBin::Bin/lib";
use Gates;

sub {
    my ($env) = @_;
    my ($gate) = $env->{PATH_INFO} =~ m{([^/]+)};
    push @{ $env->{'psgix.cleanup.handlers'} }, sub {
        print STDERR "works in $$\n";
        hold($gate);
        print STDERR "has worked\n";
    };
    return [200, ['Content-Type', 'text/plain'], ['done']];
};
