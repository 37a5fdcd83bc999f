# An application of PSGI that uses Parkade's waits.

use strict;
use warnings;

use Parkade ':waits';

my $text = ['Content-Type', 'text/plain'];

# A wait with headers that the application adds.
sub with { my ($wait, @headers) = @_; my $response = park($wait); push @{ $response->[1] }, @headers; return $response }

my %wrong = (
    odd       => sub { with(after(0), 'X-A') },
    reference => sub { with(after(0), 'X-A' => [1]) },
    wide      => sub { with(after(0), 'X-A' => "\x{263a}") },
    type      => sub { my ($env) = @_; $env->{'parkade.publish'}->('news', 'x', content_type => 'x' x 1_025) },
);

my $kept;
my %pages = (
    news => sub { return park(channel('news')->next(timeout => 20)) },
    shown => sub { return park(channel('news')->next(timeout => 20)->then(\&shown)) },
    env => sub { my ($env) = @_; return $env->{'parkade.park'}->(after(0.05, 'later')) },
    delayed => sub { return sub { $_[0]->(park(after(0.05, 'delayed'))) } },
    publish => sub { channel('news')->publish('news'); return [200, $text, ['published']] },
    job => sub { return park(enqueue(write_log => 'a')->result(timeout => 10)) },
    kept => sub { return $kept //= park(channel('news')->next(timeout => 20)) },
    numbers => sub { return with(after(0, 'text'), 'X-Number' => 5, 'X-Nothing' => undef) },
    wrong => sub { my ($env, $what) = @_; return $wrong{$what}->($env) },
    echo => sub { my ($env) = @_; return [200, ['Parkade-Parked', $env->{HTTP_X_KEY} // ''], ['not parked']] },
);

job write_log => sub { my ($line) = @_; return "wrote $line" };

sub shown { my ($message) = @_; return "shown: $message" }

my $app = sub {
    my ($env) = @_;
    my (undef, $page, @rest) = split m{/}, $env->{PATH_INFO};
    my $code = $pages{ $page // '' } or return [404, $text, ['nothing']];
    return $code->($env, @rest);
};

# Middleware: its header is kept for the answer.
sub {
    my ($env) = @_;
    my $response = $app->($env);
    push @{ $response->[1] }, 'X-Middleware', 'kept' if ref $response eq 'ARRAY';
    return $response;
};
