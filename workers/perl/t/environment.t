# The environment is the same by the way for the usual heads and by the general one.

use strict;
use warnings;

use Test::More;
use Parkade::MessagePack       qw(bin encode);
use Parkade::PSGI::Environment ();

my @usual = (host => bin('example.com:8000'), cookie => bin('a=1'), cookie => bin('b=2'), accept => bin('x'), accept => bin('y'));
my %heads = (
    'the usual' => ['GET', '/caf%C3%A9', 'a=%20', \@usual, '192.0.2.1', 'https', '1.1', 'id'],
    'over HTTP/2' => ['GET', '/', '', \@usual, '192.0.2.1', 'http', '2', 'id'],
    'without an id' => ['GET', '/', '', [], '', 'http', '1.0'],
    'a long path' => ['GET', '/' . 'p' x 300, 'q' x 40, \@usual, '192.0.2.1', 'http', '1.1', 'i' x 32],
    'a long value' => ['GET', '/', '', [cookie => bin('c' x 5_000)], '192.0.2.1', 'http', '1.1', 'id'],
    'many fields' => ['GET', '/', '', [map { ("x-$_" => bin($_)) } 1 .. 50], '192.0.2.1', 'http', '1.1', 'id'],
    'a path of characters' => ['GET', "/\x{e9}\x{263a}", '', [], '192.0.2.1', 'http', '1.1', 'id'],
    'fields that are left out' => ['GET', '/', '', [proxy => bin('x'), x_y => bin('x')], '', 'http', '1.1', 'id'],
    'more elements' => ['GET', '/', '', \@usual, '', 'http', '1.1', 'id', 0, '/run/socket', 0, 'later', 7],
);
for my $name (sort keys %heads) {
    my $head = encode($heads{$name});
    my $env  = Parkade::PSGI::Environment::of_head($head);
    is_deeply($env, Parkade::PSGI::Environment::_slowly($head), $name);
    for my $size (0 .. length($head) - 1) {
        last if $size > 400;
        ok(0, "$name, cut at $size") if eval { Parkade::PSGI::Environment::of_head(substr $head, 0, $size) };
    }
}
my $env = Parkade::PSGI::Environment::of_head(encode($heads{'the usual'}));
is($env->{PATH_INFO}, "/caf\xc3\xa9", 'a path is decoded to bytes');
is_deeply([@$env{qw(HTTP_COOKIE HTTP_ACCEPT)}], ['a=1; b=2', 'x, y'], 'fields with one name');
is_deeply([@$env{qw(SERVER_NAME SERVER_PORT)}], ['example.com', 8000], 'the server is what the client calls it');
done_testing;
