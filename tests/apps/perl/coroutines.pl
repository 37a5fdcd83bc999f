# Coroutines: await, with Future::AsyncAwait, next to plain subs.

use strict;
use warnings;

use FindBin ();
use Future::AsyncAwait;
use lib "$FindBin::Bin/lib";
use Gates;
use Parkade;

{
    package Guard;
    sub new { my ($class, $text) = @_; return bless { text => $text }, $class }
    sub DESTROY { my ($self) = @_; print "$self->{text}\n" }
}

get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };
get '/hold/{gate}' => sub { my ($gate) = @_; print "holds at $gate\n"; hold($gate); return "$$" };
get '/none'        => async sub { return 'at once' };

get '/after/{seconds:float}' => async sub {
    my ($seconds) = @_;
    my @nothing = await after $seconds;
    return join ',', "after $seconds", param('more') // 'no more', map { $_ // 'undef' } @nothing;
};
get '/next/{name}' => async sub {
    my ($name) = @_;
    my $guard   = Guard->new("$name is over");
    my $message = await channel($name)->next(timeout => param('timeout') // 20);
    return { value => $message && $message->text, pid => $$ };
};
get '/two/{name}' => async sub {
    my ($name) = @_;
    my $first  = await channel($name)->next;
    my $second = await channel($name)->next(since => $first->cursor);
    return ["$first", "$second"];
};

async sub total {
    my ($rows) = await query('select 20 as n union select 22');
    my $total = 0;
    $total += $_->{n} for @$rows;
    return $total;
}
get '/nested' => async sub { my $total = await total(); await after 0; return { total => $total + await total() } };

get '/caught' => async sub {
    my $rows = eval { await query('select nothing'); 1 };
    return $rows ? 'well' : "caught: $@";
};
get '/raises'   => async sub { await after 0; die "after the wait\n" };
get '/uncaught' => async sub { await query('select nothing'); return 'never' };
get '/uncaught-by-the-core' => sub { return query('select nothing') };
get '/parks'    => async sub { await after 0; return after(0.01)->then(\&at_last, 'parked') };
async sub at_last { my ($word) = @_; await after 0; return "at last $word" }

get '/published/{name}' => async sub {
    my ($name) = @_;
    await after 0;
    channel($name)->publish('from a coroutine');
    return 'published';
};

job slowly => async sub { my ($word) = @_; await after 0.05; print "job of $word\n"; return "did $word" };
post '/job/{word}' => async sub { my ($word) = @_; my $job = enqueue slowly => $word; return await $job->result(timeout => 20) };

get '/exits'       => async sub { exit 3 };
get '/exits/after' => async sub { await after 0.01; exit };
get '/streams' => async sub { await channel('news')->stream };
get '/then'    => async sub { await after(0)->then(\&at_last) };

1;
