# What apps/shop_queries.py does, in Perl, but for transactions.

use strict;
use warnings;
use utf8;

use FindBin ();
use Future::AsyncAwait;
use JSON::PP ();
use lib "$FindBin::Bin/lib";
use Parkade;
use Parkade::MessagePack qw(bin);

my $json = JSON::PP->new->utf8->allow_nonref;

get '/standing'        => query(q{select 1 as n, 'hola' as word});
get '/standing-value'  => query('select 1')->value;
get '/standing-nobody' => query('select 1 where false')->one;

sub asked {
    my $ask   = request->json;
    my $query = query($ask->{sql}, @{ $ask->{parameters} || [] })->on($ask->{database} // 'default');
    my $shape = $ask->{shape} // 'rows';
    $query = $query->$shape                      if $shape ne 'rows';
    $query = $query->deadline($ask->{deadline})  if defined $ask->{deadline};
    $query = $query->int8($ask->{int8})          if defined $ask->{int8};
    $query = $query->shared(@$ask{qw(shared ttl)}) if defined $ask->{shared};
    return $query;
}

# Any outcome as a response.
sub answered { my ($found) = @_; return [200, ['content-type', 'application/json'], [$json->encode($found)]] }

# The three ways

post '/returned' => sub { return asked() };
post '/then'     => sub { return asked()->then(\&answered) };
post '/awaited'  => async sub { return answered(await asked()) };

{
    package Guard;
    sub new { my ($class) = @_; return bless {}, $class }
    sub DESTROY { my ($self) = @_; print "cancelled while awaiting a query\n" if !$self->{is_over} }
}

post '/awaited-noisily' => async sub {
    my $guard = Guard->new;
    my $found = await asked();
    $guard->{is_over} = 1;
    return answered($found);
};

post '/caught' => async sub {
    my $answer;
    return $answer if eval { $answer = answered(await asked()); 1 };
    my $error = $@;
    my (undef, $reason, $sqlstate, undef, $effect, $status) = $error->details;
    return { reason => $reason, sqlstate => $sqlstate, effect => $effect, status => $status, text => "$error" };
};

post '/deadline' => sub { return asked() }, deadline => 0.3;

get '/number/{number:int}' => sub { my ($number) = @_; return query('select $1::int as n', $number) };
get '/many/{count:int}/{size:int}' => sub {
    my ($count, $size) = @_;
    return query(q{select n, repeat('x', $2) as text from generate_series(1, $1) n}, $count, $size);
};
get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };
get '/pid'         => sub { return "$$" };

# Values

my @VALUES = (
    [none   => text    => undef],
    [bool   => bool    => \1],
    [int    => int8    => -9_223_372_036_854_775_808],
    [float  => float8  => 0.1],
    [str    => text    => qq{grüße 'quoted' \\ "double" \n \$1}],
    [bytes  => bytea   => bin("\0\xff\\")],
    [array  => 'int4[]' => [1, undef, 3]],
    [texts  => 'text[]' => ['a,b', 'c"d', 'NULL', undef, '{}', '\\']],
    [matrix => 'int4[]' => [[1, 2], [3, 4]]],
    [dict   => jsonb   => { a => [1, undef] }],
);

get '/values' => sub {
    my $at      = 0;
    my $columns = join ', ', map { my ($name, $kind) = @$_; $at++; "\$${at}::$kind as $name" } @VALUES;
    return query("select $columns", map { $_->[2] } @VALUES)->one;
};
get '/large-value/{kibibytes:int}' => sub {
    my ($kibibytes) = @_;
    return query('select length($1) as length', 'x' x ($kibibytes << 10))->one;
};
get '/nul' => sub { return query('select $1::text', "a\0b") };

# Channels that the database feeds

sub since { return map { ($_ => param($_)) } grep { defined param($_) } 'since' }

get '/next/{name}'      => sub { my ($name) = @_; return channel($name)->next(timeout => 30, since()) };
get '/next-then/{name}' => sub { my ($name) = @_; return channel($name)->next(timeout => 30)->then(\&told_message) };

sub told_message {
    my ($message) = @_;
    return if !$message;
    my $is_json = $message->content_type =~ /json/;
    return { value => $is_json ? $message->json : $message->text, gap => $message->gap ? \1 : \0 };
}
get '/events/{name}' => sub { my ($name) = @_; return channel($name)->stream };

1;
