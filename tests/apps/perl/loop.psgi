# A program of AnyEvent: timers and sockets of its own, answers that are delayed, and one that blocks.

use strict;
use warnings;

use AnyEvent;
use AnyEvent::Socket;

my $text  = ['Content-Type', 'text/plain'];
my $ticks = 0;
my @held;

# `our`: no function keeps them.
our $tick = AnyEvent->timer(after => 0, interval => 0.01, cb => sub { $ticks++ });

# A socket of its own, which answers with what it gets.
my $port;
our $listener = tcp_server '127.0.0.1', undef, sub {
    my ($handle) = @_;
    my $watcher;
    $watcher = AnyEvent->io(fh => $handle, poll => 'r', cb => sub {
        sysread $handle, my $data, 100 or undef $watcher;
        syswrite $handle, $data if length $data;
    });
}, sub { $port = $_[2]; return };

my %pages = (
    nonblocking => sub { return [200, $text, [$_[0]{'psgi.nonblocking'} ? 'yes' : 'no']] },
    ticks => sub { return [200, $text, [$ticks]] },
    port => sub { return [200, $text, [$port]] },
    after => sub {
        my (undef, $seconds) = @_;
        return sub {
            my ($respond) = @_;
            my $timer;
            $timer = AnyEvent->timer(after => $seconds, cb => sub { undef $timer; $respond->([200, $text, ["after $seconds"]]) });
        };
    },
    hold => sub {
        return sub { push @held, $_[0] };
    },
    release => sub {
        my $count = my @answered = splice @held;
        our $soon = AnyEvent->timer(after => 0.01, cb => sub { $_->([200, $text, ['released']]) for splice @answered });
        return [200, $text, [$count]];
    },
    exits => sub {
        return sub { push @held, $_[0]; our $exit = AnyEvent->timer(after => 0.05, cb => sub { exit }) };
    },
    counted => sub {
        return sub {
            my ($respond) = @_;
            my $writer = $respond->([200, $text]);
            my $number = 0;
            my $timer;
            $timer = AnyEvent->timer(after => 0, interval => 0.05, cb => sub {
                $writer->write($number++ . "\n");
                if ($number == 3) { undef $timer; $writer->close }
            });
        };
    },
    recv => sub {
        my $done  = AnyEvent->condvar;
        my $timer = AnyEvent->timer(after => 0.1, cb => sub { $done->send('received') });
        return [200, $text, [$done->recv]];
    },
    raises => sub {
        return sub {
            my ($respond) = @_;
            my $timer;
            $timer = AnyEvent->timer(after => 0, cb => sub { undef $timer; die "in a callback\n" if $respond });
        };
    },
    flood => sub {
        return sub {
            my ($respond) = @_;
            my $writer = $respond->([200, $text]);
            $writer->write('x' x 1_000_000) for 1 .. 3;
            $writer->close;
        };
    },
);

sub {
    my ($env) = @_;
    my (undef, $page, @rest) = split m{/}, $env->{PATH_INFO};
    my $code = $pages{ $page // '' } or return [404, $text, ['there is no such path']];
    return $code->($env, @rest);
};
