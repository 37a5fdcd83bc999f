# What apps/scripted_asgi.py does, as far as the tests of the access log need it: a test says in the query what is answered.
# start(STATUS), body(b'TEXT' * COUNT, MORE), hold('GATE') and fail('KIND'), in a list.

use strict;
use warnings;

use Time::HiRes ();

my $text = ['Content-Type', 'text/plain'];

my %steps = (
    start => sub { my ($told, $status) = @_; $told->{status} = length $status ? $status : 200; return },
    body  => sub {
        my ($told, $said) = @_;
        my ($piece, $count, $more) = $said =~ /\A(?:b'([^']*)')?(?: \* ([0-9_]+))?(, 1)?\z/ or die "a body is not $said\n";
        my $written = ($piece // '') x (defined $count ? $count =~ tr/_//dr : 1);
        if ($more || $told->{writer}) {
            $told->{writer} //= $told->{respond}->([$told->{status}, $text]);
            $told->{writer}->write($written);
        }
        else { $told->{respond}->([$told->{status}, $text, [$written]]) }
        $told->{writer}->close if $told->{writer} && !$more;
        return;
    },
    hold => sub {
        my (undef, $gate) = @_;
        $gate =~ tr/'//d;
        Time::HiRes::sleep(0.01) until -e "$ENV{GATES}/$gate";
        return;
    },
    fail => sub { die "on purpose\n" },
);

sub {
    my ($env) = @_;
    return [200, $text, ['Hola ' . substr $env->{PATH_INFO}, 6]] if $env->{PATH_INFO} =~ m{\A/hola/};
    (my $said = $env->{QUERY_STRING}) =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
    my @steps = $said =~ /(\w+)\(([^)]*)\)/g;
    return sub {
        my %told = (respond => $_[0]);
        while (my ($name, $with) = splice @steps, 0, 2) { $steps{$name}->(\%told, $with) }
        return;
    };
};
