# The compiled loop keeps nothing of the requests that it has served.
# PARKADE_MEMORY_REQUESTS: how many.

use strict;
use warnings;
use lib 't/lib';

use Test::More;
use Parkade::Compiled    ();
use Parkade::MessagePack qw(bin);
use Parkade::Wire        qw(:all);

plan skip_all => 'there is no compiled loop: ' . Parkade::Compiled::state() if !Parkade::Compiled::IS_USED;
plan skip_all => 'memory is read from /proc' if !-r '/proc/self/statm';
require Both;
Both->import;
our $HELLO;
{
    no warnings qw(redefine once);
    *Parkade::Log::record = sub { };
}

use constant GROWTH_MAX => 512 * 1_024;    # bytes; what a request would leave is at least 24 of them

my $requests = $ENV{PARKADE_MEMORY_REQUESTS} // 60_000;

sub memory {
    open my $file, '<', '/proc/self/statm' or die $!;
    return (split ' ', <$file>)[1] * 4_096;
}

# A pipe from a process that writes requests, as fast as they are read.
sub served {
    my ($application, @asked) = @_;
    my $block = requests((@asked) x 64);
    my $size  = 64 * @asked;
    pipe my $reader,  my $sender   or die $!;
    pipe my $greeted, my $greeting or die $!;
    defined(my $child = fork) or die $!;
    if (!$child) {
        close $_ for $reader, $greeting;
        syswrite $sender, $HELLO;
        sysread $greeted, my $nothing, 1;    # until the other end has been closed
        for (my $sent = 0; $sent < $requests; $sent += $size) {
            syswrite $sender, $block or last;
            # The numbers of streams go up.
            my $at = 0;
            while ($at < length $block) {
                my ($length, $stream) = unpack "\@$at N x4 N", $block;
                substr $block, $at + 8, 4, pack 'N', $stream + $size;
                $at += HEADER_SIZE + $length;
            }
        }
        require POSIX;
        POSIX::_exit(0);
    }
    close $_ for $sender, $greeted;
    open my $writer, '>', '/dev/null' or die $!;
    my $link = Parkade::Link->new($reader, $writer, Parkade::Session->new);
    $link->greet or die 'no greeting';
    close $greeting;
    my ($count, $before) = 0;
    $link->serve(Parkade::PSGI->new(sub { $before = memory() if ++$count == int $requests / 3; &$application }));
    waitpid $child, 0;
    return ($count >= $requests, memory() - $before);
}

my %kinds = (
    'plain responses'      => [sub { [200, ['Content-Type', 'text/plain', 'Content-Length', 5], ['hello']] }, {}],
    'bodies'               => [sub { [200, [], [scalar readline $_[0]{'psgi.input'}]] }, { body => 'some text' }],
    'fields of many names' => [do { my $number = 0; sub { [200, ['X-A', $number++], []] } }, map { { fields => ["x-$_" x 3, bin('a'), 'y' x $_, bin('b')] } } 1 .. 300],
    'deaths'               => [sub { die { code => 7 } }, {}],
    'cleanup'              => [sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { }; [200, [], []] }, {}],
    'closures that are kept' => [do { my $kept; sub { $kept = $_[0]{'parkade.publish'}; [200, [], []] } }, {}],
    'input that is closed' => [sub { close $_[0]{'psgi.input'}; [200, [], []] }, {}],
    'responses for Perl'   => [sub { [200, ['X', 1.5], ["\x{e9}", [], undef]] }, {}],
    'delayed responses'    => [sub { sub { $_[0]->([200, [], ['late']]) } }, {}],
    'unusual heads'        => [sub { [200, [], []] }, { is_short => 1, path => "/\x{263a}" }, {}],
);
for my $name (sort keys %kinds) {
    my ($all, $growth) = served(@{ $kinds{$name} });
    ok($all, "$name: all were served");
    cmp_ok($growth, '<', GROWTH_MAX, "$name: nothing is kept");
}
done_testing;
