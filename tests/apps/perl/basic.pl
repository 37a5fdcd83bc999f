# What apps/basic.py does, in Perl.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin     ();
use lib "$FindBin::Bin/lib";
use Gates;
use Parkade;

channel 'short/*', count => 3;
channel 'deep/*',  bytes => 4_000_000;
channel 'brief/*', age   => 0.3;
channel 'small/*', bytes => 4_000;

get '/constant'        => 'constant';
get '/constant-page'   => html('<p>page');
get '/standing-timer'  => after(0.2, 'later');
get '/standing-next'   => channel('standing')->next(timeout => 30);
get '/standing-stream' => channel('standing')->stream;
get '/standing-past'   => channel('short/past')->stream(since => 'beginning');
get '/standing-oldest' => channel('short/past')->next(timeout => 0, since => 'beginning');

get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };
get '/pid'         => sub { return "$$" };

# The contents of a request

any [qw(GET POST PUT PATCH DELETE OPTIONS)], '/echo' => sub {
    my $request = request;
    my $env     = $request->env;
    my %names   = map { ($_ => lc(s/\AHTTP_//r =~ tr/_/-/r)) } grep { /\A(?:HTTP_|CONTENT_)/ } keys %$env;
    my ($path)  = split /[?]/, $env->{REQUEST_URI};
    return {
        method  => $request->method,
        path    => $path,
        query   => $request->query_string,
        headers => [map { [$names{$_}, $env->{$_}] } sort keys %names],
        client  => $request->client,
        scheme  => $request->scheme,
        version => $env->{SERVER_PROTOCOL} =~ s/HTTP.//r =~ s/2[.]0/2/r,
        body    => $request->body,
    };
};
get '/echo/{rest:path}' => sub { my ($rest) = @_; return $rest };
post '/digest'          => sub { my $body = request->body; return { bytes => length $body, sha256 => sha256_hex($body) } };

# The kinds of responses

get '/bytes/{count:int}' => sub { my ($count) = @_; return [200, ['content-type', 'application/octet-stream'], ['x' x $count]] };
get '/stream/{count:int}/{size:int}' => sub {
    my ($count, $size) = @_;
    my $at = 0;
    return sub { return $at < $count ? chr(97 + $at++ % 26) x $size : undef };
};
get '/gated-stream/{gate}' => sub {
    my ($gate) = @_;
    my @pieces = (sub { 'before' }, sub { hold($gate); 'behind' });
    return sub { my $next = shift @pieces; return $next && $next->() };
};
get '/status/{code:int}'          => sub { my ($code) = @_; return Parkade::Response->new($code) };
get '/bodiless/{code:int}'        => sub { my ($code) = @_; return Parkade::Response->new($code, [], 'five!') };
get '/bodiless-stream/{code:int}' => sub {
    my ($code) = @_;
    my @pieces = ('five!') x 3;
    return Parkade::Response->new($code, [], sub { return shift @pieces });
};
get '/dated' => sub { return Parkade::Response->new(200, ['Date', 'Sun, 06 Nov 1994 08:49:37 GMT'], 'then') };
get '/raise' => sub { die "the handler of /raise raises\n" };

# Handlers that take their time

get '/hold/{gate}'          => sub { my ($gate) = @_; print "holds at $gate\n"; hold($gate); return "$$" };
get '/hold-for-ever/{gate}' => sub { my ($gate) = @_; hold($gate); return 'held' }, deadline => 0;

# Waits

sub seconds { my ($seconds) = @_; return $seconds =~ /[.]/ ? $seconds : "$seconds.0" }

get '/after/{seconds:float}'      => sub { my ($seconds) = @_; return after $seconds, 'after ' . seconds($seconds) };
get '/after-then/{seconds:float}' => sub { my ($seconds) = @_; return after($seconds)->then(\&told, 'time') };

sub told { my ($what) = @_; return { what => $what, outcome => undef, pid => $$ } }

sub chosen { return map { ($_ => param($_)) } grep { defined param($_) } @_ }

get '/next/{name:path}'      => sub { my ($name) = @_; return channel($name)->next(chosen(qw(timeout since))) };
get '/next-then/{name:path}' => sub {
    my ($name) = @_;
    return channel($name)->next(chosen(qw(timeout since)))->then(\&told_message, $name, request->path);
};

sub told_message {
    my ($message, $name, $path) = @_;
    return { name => $name, value => undef, path => $path } if !defined $message;
    return {
        name   => $name,
        value  => $message->text,
        cursor => $message->cursor,
        gap    => $message->gap ? \1 : \0,
        path   => $path,
        pid    => $$,
    };
}

get '/twice/{name:path}' => sub { my ($name) = @_; return channel($name)->next->then(\&once_more, $name) };
sub once_more { my ($message, $name) = @_; return channel($name)->next(since => $message->cursor)->then(\&both, $message->text) }
sub both      { my ($message, $first) = @_; return [$first, $message->text] }

get '/events/{name:path}' => sub { my ($name) = @_; return channel($name)->stream(chosen('since')) };

sub publish {
    my ($name, @options) = @_;
    my $type = request->header('content-type');
    channel($name)->publish(request->body, @options, defined $type ? (content_type => $type) : ());
    return Parkade::Response->new(202);
}
post '/publish/{name:path}'       => \&publish;
post '/publish-event/{name:path}' => sub { my ($name) = @_; return publish($name, event => param('event')) };

get '/history/{name:path}'      => sub { my ($name) = @_; return channel($name)->history };
get '/history-then/{name:path}' => sub { my ($name) = @_; return channel($name)->history->then(\&told_history, request->path) };
sub told_history { my ($messages, $path) = @_; return [scalar @$messages, $path, $messages->[-1]->cursor] }

post '/publish-many/{count:int}/{name:path}' => sub {
    my ($count, $name) = @_;
    channel($name)->publish("$_") for 0 .. $count - 1;
    return Parkade::Response->new(202);
};
post '/publish-json/{name:path}' => sub {
    my ($name) = @_;
    channel($name)->publish(request->json);
    return Parkade::Response->new(202);
};

1;
