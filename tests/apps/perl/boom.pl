# What apps/costs.py does at /boom, in Perl.

use strict;
use warnings;

use Parkade;

get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };

any [qw(GET POST)], '/boom/{what:path}' => sub {
    my ($what) = @_;
    print $what =~ tr/\n/ /r, "\n";    # output of several lines stays in several lines
    die "no $what in ", request->body;
};

1;
