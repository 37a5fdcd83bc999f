# What apps/faulty.py does, in Perl: everything wrong, each at its own path.

use strict;
use warnings;

use FindBin ();
use POSIX   ();
use lib "$FindBin::Bin/lib";
use Gates;
use Parkade;
use Time::HiRes ();

my @memory;

get '/hola/{name}'           => sub { my ($name) = @_; return "Hola $name" };
get '/pid'                   => sub { return "$$" };
get '/hold/{gate}'           => sub { my ($gate) = @_; hold($gate); return 'held' };
get '/next/{name}'           => sub { my ($name) = @_; return channel($name)->next };
get '/after/{seconds:float}' => sub { my ($seconds) = @_; return after $seconds, 'after' };

# Deaths

get '/kill'      => sub { kill KILL => $$ };
get '/segfault'  => sub { kill SEGV => $$ };
get '/exit'      => sub { POSIX::_exit(3) };
get '/loop'      => \&loop;
get '/loop-soon' => \&loop, deadline => 0.2;
get '/leak/{mebibytes:int}' => sub {
    my ($mebibytes) = @_;
    push @memory, 'x' x ($mebibytes << 20);
    Time::HiRes::sleep(0.02);    # or a gigabyte would be gone before the test sees it
    return scalar @memory;
};

sub loop { 1 while 1 }

# Invalid responses

sub with_field { my ($name, $value) = @_; return Parkade::Response->new(200, [$name, $value], 'x') }

get '/raise'       => sub { die "the handler of /raise raises\n" };
get '/object'      => sub { return bless {}, 'Object' };
get '/tuple'       => sub { return \'text' };
get '/split-value' => sub { return with_field('X-A', "1\r\nX-B: 2") };
get '/nul-value'   => sub { return with_field('X-A', "1\0") };
get '/split-name'  => sub { return with_field("X-A: 1\r\nX-B", '2') };
get '/empty-name'  => sub { return with_field('', '2') };
get '/split-in-a-wait' => sub { return after 0.01, with_field('X-A', "1\nX-B: 2") };

sub in_pieces { my (@pieces) = @_; return sub { return shift @pieces } }

get '/length/{announced:int}' => sub { my ($announced) = @_; Parkade::Response->new(200, ['Content-Length', $announced], '12345') };
get '/length-streamed/{announced:int}' => sub {
    my ($announced) = @_;
    return Parkade::Response->new(200, ['Content-Length', $announced], in_pieces('12345'));
};
get '/length-nonsense' => sub { return Parkade::Response->new(200, ['Content-Length', 'five'], '12345') };
get '/framing'         => sub {
    return Parkade::Response->new(200, ['Transfer-Encoding', 'chunked', 'Connection', 'upgrade', 'Upgrade', 'x'], '12345');
};
get '/breaks-off' => sub {
    my @pieces = (sub { 'the beginning' }, sub { die "in the middle of an answer\n" });
    return sub { my $next = shift @pieces; return $next && $next->() };
};
get '/streams-nonsense'   => sub { return in_pieces('the beginning', {}) };
get '/waits-for-nonsense' => sub { return channel("x\r\ny")->next };
get '/prints' => sub { print "a line \e[31m of the application\r\nforged: another\n"; return 'printed' };

1;
