# What a job knows of its attempt, and what a wait carries of it; how results are stored.

use strict;
use warnings;

use Test::More;
use Parkade             ();
use Parkade::Attempt    ();
use Parkade::MessagePack qw(decode encode);
use Parkade::Native     ();
use Parkade::Response   ();

my $id = pack 'H*', '0123456789abcdef0123456789abcdef';
my $attempt = Parkade::Attempt->new(1, [$id, 'write', 2, 10, 'mine', undef]);
is($attempt->id, '01234567-89ab-cdef-0123-456789abcdef', 'a UUID');
is_deeply([$attempt->name, $attempt->attempt, $attempt->request_id, $attempt->traceparent], ['write', 2, 'mine', undef], 'the rest');
ok($attempt->deadline > 5 && $attempt->deadline <= 10, 'its time runs');

my $later = Parkade::Attempt->new(5, decode(encode($attempt->carried)));
is($later->$_, $attempt->$_, "a wait carries its $_") for qw(id name attempt request_id);
$later->pause;
is($later->deadline, $later->deadline, 'time in a wait does not count');
$later->go_on;
ok($later->deadline > 0, 'it goes on');
is(Parkade::Attempt->new(1, [$id, 'write', 1, undef])->deadline, undef, 'no deadline');

ok(!eval { Parkade::job(); 1 }, 'outside of a job');
like($@, qr/no job is running here/, 'that is told');
{
    local $Parkade::Native::job = $attempt;
    is(Parkade::job()->attempt, 2, 'job, in a job');
}

for my $wrong (-0.1, 1.1, 'half') {
    ok(!eval { $attempt->progress($wrong); 1 }, "$wrong is no fraction");
}

my $response = Parkade::Response::loaded(Parkade::Response::stored(Parkade::Response->new(201, ['X-A', 'b'], 'text')));
is_deeply(Parkade::Response::encoded($response)->[0], 201, 'a response is a result');
is_deeply(Parkade::Response::loaded(Parkade::Response::stored({ a => [1] })), { a => [1] }, 'so are data');

is(Parkade::Native::failure_text(['no result', $id, 'dead', 'it is broken']), 'it is broken', 'why there is no result');
ok(!Parkade::Native::has_failed(['pending', 'running']), 'a timeout is no failure');

done_testing;
