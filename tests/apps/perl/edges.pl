# What apps/edges.py does, in Perl.

use strict;
use warnings;

use Parkade;

get '/constant/{what}' => 'constant';
get '/waits/{what}'    => channel('waits')->next(timeout => 0.01);

get '/hola/{name}'  => sub { my ($name) = @_; return "Hola $name" };
get '/named/{name}' => sub { my ($name) = @_; return $name };

sub seen { my ($path) = split /[?]/, request->env->{REQUEST_URI}; return { path => $path, query => request->query_string } }

get '/seen/{rest:path}' => \&seen;
get '/seen'             => \&seen;

# A control character in a field's value.
get '/control/{code:int}' => sub { my ($code) = @_; return Parkade::Response->new(200, ['x-a', 'a' . chr($code) . 'b'], 'x') };

get '/announced'        => sub { return Parkade::Response->new(200, ['content-length', 12_345]) };
get '/announced-stream' => sub {
    my @pieces = qw(12 345);
    return Parkade::Response->new(200, ['content-length', 5], sub { return shift @pieces });
};
get '/who' => sub { return { client => request->client, scheme => request->scheme, host => request->header('host') } };

1;
