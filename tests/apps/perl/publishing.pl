# What apps/publishing.py does, in Perl: handlers that publish, and continue in every possible way.

use strict;
use warnings;

use Parkade;

get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };

sub published { my ($name) = @_; channel($name)->publish('x'); return }
sub accepted  { return Parkade::Response->new(202) }

post '/answers/{name}' => sub { my ($name) = @_; published($name); return accepted() };
post '/waits/{name}'   => sub { my ($name) = @_; published($name); return after 0.01, 'published' };
post '/calls/{name}'   => sub { my ($name) = @_; published($name); return after(0.01)->then(\&called) };
sub called { return 'published' }

post '/streams/{name}' => sub {
    my ($name) = @_;
    my @pieces = (sub { 'begun' }, sub { published($name); 'ended' });
    return sub { my $next = shift @pieces; return $next && $next->() };
};

# Outside of any request.
post '/thread/{name}' => sub {
    my ($name) = @_;
    Parkade::Link->current->publish(0, $name, 'x');
    return accepted();
};

get '/next/{name}' => sub { my ($name) = @_; return channel($name)->next(timeout => 2) };
get '/then/{name}' => sub {
    my ($name) = @_;
    return channel($name)->next(timeout => 2, since => cursor())->then(\&told);
};
sub cursor {
    my ($told) = grep { defined } request->header('last-event-id'), request->header('if-none-match');
    return $told if !defined $told || $told =~ /,/;
    $told =~ s/\A(?:W\/)?"?|"\z//g;
    return $told eq '' || $told eq '*' ? undef : $told;
}
sub told { my ($message) = @_; return $message ? { text => $message->text, gap => $message->gap ? \1 : \0 } : {} }

get '/stream/{name}' => sub { my ($name) = @_; return channel($name)->stream };

1;
