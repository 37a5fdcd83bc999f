# What apps/failing.py does, in Perl, as far as it has it.

use strict;
use warnings;

use POSIX ();
use Parkade;

get '/hola/{name}'  => sub { my ($name) = @_; return "Hola $name" };
get '/gone/{what}'  => sub { my ($what) = @_; return Parkade::Response->new(410, ['content-type', 'text/plain'], "$what is <gone>") };
get '/raise/{what}' => sub { my ($what) = @_; die "$what\n" };
get '/raise-later'  => sub { return after(0)->then(\&failing, 'later') };
sub failing { my ($what) = @_; die "$what\n" }

get '/channel'             => sub { return channel(param('name'))->next(timeout => 0) };
get '/query'               => sub { return query('selct 1') };
get '/log/{level:int}'     => sub { warn param('text') // 'told', "\n"; return };
get '/print'               => sub { print param('text'), "\n"; print STDERR param('text'), "\n"; return };
get '/die'                 => sub { POSIX::_exit(3) };
get '/pieces'              => sub {
    my @pieces = (sub { 'one' }, sub { die "in the middle\n" });
    return sub { my $next = shift @pieces; return $next && $next->() };
};

# Ids of requests

get '/id'        => sub { return request->id };
get '/id/own'    => sub { return Parkade::Response->new(200, ['X-Request-Id', 'own'], 'own') };
get '/id/later'  => sub { return after(0)->then(\&told_id, request->id) };
get '/id/never'  => sub { return channel('ids')->next(timeout => 5) };
get '/id/events' => sub { return channel('ids')->stream };
sub told_id { my ($id) = @_; return $id }

1;
