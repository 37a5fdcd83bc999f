# What apps/costs.py does, in Perl, as far as it has it: each part of a request that it reads for a handler.

use strict;
use warnings;

use Parkade;

my $both = [qw(GET POST)];

any $both, '/form'    => sub { my @values = request->params('a'); return scalar @values };
any $both, '/query'   => sub { my @values = request->params('a'); return scalar @values };
any $both, '/json'    => sub { my $data = request->json; return ref $data || 'a value' };
any $both, '/echo'    => sub { return request->json };
any $both, '/headers' => sub { return join ' ', map { length(request->header($_) // '') } qw(Accept If-None-Match Last-Event-ID Prefer) };
any $both, '/rest/{rest:path}' => sub { my ($rest) = @_; return join ' ', length $rest, length request->path };
get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };

1;
