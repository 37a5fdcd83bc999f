# The preforking Perl server: each request that sleeps holds a worker.
use strict;
use warnings;

sub {
    my $path = shift->{PATH_INFO};
    sleep 1 if $path eq '/slow';
    sleep 2 if $path eq '/delayed';
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => 4], ['done']];
};
