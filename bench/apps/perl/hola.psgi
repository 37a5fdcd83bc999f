# A small answer from a bare application.
use strict;
use warnings;

sub {
    my ($env) = @_;
    my ($name) = $env->{PATH_INFO} =~ m{\A/hola/(.+)\z} or return [404, [], []];
    my $text = "Hola $name";
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => length $text], [$text]];
};
