# The asynchronous Perl server: a timer for each request, one process.
use strict;
use warnings;
use AnyEvent;

my %seconds = ('/delayed' => 2, '/later' => 60);

sub {
    my @head = ('Content-Type' => 'text/plain', 'Content-Length' => 4);
    my $wait = $seconds{shift->{PATH_INFO}};
    return [200, \@head, ['Hola']] if !$wait;
    return sub {
        my $respond = shift;
        my $timer;
        $timer = AE::timer $wait, 0, sub { undef $timer; $respond->([200, \@head, ['done']]) };
    };
};
