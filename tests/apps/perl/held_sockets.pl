# What apps/held_sockets.py does, in Perl.

use strict;
use warnings;

use FindBin ();
use lib "$FindBin::Bin/lib";
use Gates;
use POSIX ();
use Parkade;
use Time::HiRes ();

get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };

websocket '/rooms/{room}' => sub { my ($room) = @_; return channel($room)->socket(\&said, room => $room) };
sub said { my ($message, %more) = @_; channel($more{room})->publish($message); return }

websocket '/echo' => sub { return channel('echo')->socket(\&back) };
sub back { my ($message) = @_; return $message }

websocket '/agreed' => sub { return channel('agreed')->socket({ subprotocols => ['chat.v2', 'chat'] }, \&back) };

websocket '/length' => sub { return channel('length')->socket(\&size) };
sub size { my ($message) = @_; return '' . length $message->body }

websocket '/bids' => sub { return channel('bids')->socket(\&bid) };

sub bid {
    my ($message) = @_;
    my $amount = $message->json->{amount};
    return close_socket(1007, 'amount is a number') if $amount !~ /\A[0-9]+\z/;
    return { doubled => 2 * $amount };
}

websocket '/does' => sub { return channel('does')->socket(\&does, request->path) };

my %DOES = (
    close  => sub { my ($code) = @_; return close_socket($code, 'because') },
    fail   => sub { die "in the middle\n" },
    refuse => sub { return [403, [], ['not you']] },
    sleep  => sub { my ($seconds) = @_; Time::HiRes::sleep($seconds); return 'slept' },
    exit   => sub { POSIX::_exit(1) },
    wait   => sub { return after(0.01, 'waited') },
    call   => sub { my ($more) = @_; return after(0.01)->then(\&later, $more) },
    stream => sub { return channel('does')->stream },
    status => sub { return [202, [], []] },
    path   => sub { my (undef, $path) = @_; return $path },
);

sub does {
    my ($message, $path) = @_;
    return close_socket(1007, 'text is expected') if $message->content_type !~ /text/;
    my ($what, $more) = split / /, $message->text, 2;
    return $DOES{$what} && $DOES{$what}->($more, $path);
}
sub later { my ($more) = @_; return "later $more" }

websocket '/gate/{name}' => sub { my ($name) = @_; return channel('gate')->socket(\&passes, $name) };
sub passes { my ($message, $name) = @_; print "holds at $name\n"; hold($name); return "passed $message" }

websocket '/denied' => sub { return [403, [], ['not here']] };
get '/wrong' => sub { return channel('wrong')->socket(\&back) };

1;
