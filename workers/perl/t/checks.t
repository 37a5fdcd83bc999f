# What the application gives, and no core takes, is an exception at its own line. Nothing of it is written.

use strict;
use warnings;

use Test::More;
use JSON::PP               ();
use POSIX                  ();
use Parkade                qw(:DEFAULT park);
use Parkade::Link          ();
use Parkade::MessagePack   ();
use Parkade::PSGI::Response ();
use Parkade::Response      ();
use Parkade::Session       ();
use Parkade::Wire          qw(INLINE_MAX);

my ($INFINITY, $NAN) = (9**9**9, -sin 9**9**9);

open my $reader, '+>:raw', undef or die $!;
open my $writer, '+>:raw', undef or die $!;
my $link = Parkade::Link->new($reader, $writer, Parkade::Session->new);

sub written { return sysseek $writer, 0, 1 }

# The line of the call, which is here.
sub refused {
    my ($name, $code, $why) = @_;
    my $before = written();
    ok(!eval { $code->(); 1 }, "$name is refused");
    $why = quotemeta $why if defined $why && !ref $why;
    my $told = $why ? qr/\A$why at \Q$0\E line [0-9]+\.\n\z/ : qr/ at \Q$0\E line [0-9]+\.\n\z/;
    like($@, $told, 'with a plain reason, at the line of the application');
    is(written(), $before, 'and nothing is written');
    return;
}

sub taken {
    my ($name, $code) = @_;
    my $value = eval { $code->() };
    ok(defined $value, "$name is taken") or diag $@;
    return $value;
}

# Jobs

my $finite = 'must be a finite number of seconds, 0 or more, not';
for my $option (qw(delay at)) {
    refused("$option $_->[0]", sub { enqueue { $option => $_->[0] }, 'work' }, "$option $_->[1] $_->[0]")
      for [-1, $finite], [-0.001, $finite], [$INFINITY, $finite], [-$INFINITY, $finite], [$NAN, $finite], ['inf', $finite],
      ['nan', $finite], [1e300, $finite], ['soon', 'is a number of seconds, not'], ['', 'is a number of seconds, not'];
    taken("$option $_", sub { enqueue { $option => $_ }, 'work' }) for 0, 1, 0.5, '7', '1e3', 1e9;
}
refused('a reference', sub { enqueue { delay => [1] }, 'work' }, qr/delay is a number of seconds, not ARRAY\(.*\)/);
refused('delay and at', sub { enqueue { delay => 0, at => 1 }, 'work' }, 'give either delay or at, not both');
refused("the priority $_", sub { enqueue { priority => $_ }, 'work' }, "a priority is between -1000 and 1000, not $_")
  for -1001, 1001, 1e9, 1e30;
refused("the priority $_", sub { enqueue { priority => $_ }, 'work' }, "a priority is an integer, not $_")
  for 1.5, 'high', $INFINITY, $NAN;
taken("the priority $_", sub { enqueue { priority => $_ }, 'work' }) for -1000, 0, 1000, '7', 10 / 2;
for my $option (qw(queue key)) {
    refused("a $option of " . length, sub { enqueue { $option => $_ }, 'work' }, qr/(?:the name of a queue|a key) must have 1 to 200 bytes/)
      for '', 'x' x 201, "\x{263a}" x 67, "\xe9" x 101;
    taken("a $option of " . length, sub { enqueue { $option => $_ }, 'work' }) for 'x', 'x' x 200, "\x{263a}" x 66, "\xe9" x 100, 0;
}
refused('the name ' . length, sub { enqueue $_ => 1 }) for '', 'x' x 201, "a\n";
refused('an option that there is not', sub { enqueue { after => 1 }, 'work' }, qr/unknown option after; .*/);
refused("retry $_", sub { retry $_ }, "seconds $finite $_") for -1, $INFINITY, $NAN;
refused('retry soon', sub { retry 'soon' }, 'seconds is a number of seconds, not soon');
for my $after (undef, 0, 2.5) {
    eval { retry $after };
    is($@->{after}, $after, 'retry ' . ($after // 'undef'));
}
my $job = enqueue('work');
refused("a timeout of $_", sub { $job->result(timeout => $_) }, "timeout $finite $_") for -1, $INFINITY;
refused('an option of a result', sub { $job->result(after => 1) }, qr/unknown option after; .*/);

# Waits

refused("after $_", sub { after $_ }, "seconds $finite $_") for -1, $INFINITY, $NAN, '9' x 20;
taken("after $_", sub { after $_ }) for 0, 0.00001, '1e-3', '.5';
refused("a timeout of $_", sub { channel('c')->next(timeout => $_) }, "timeout $finite $_") for -1, $INFINITY;
refused("a history of $_", sub { channel('c')->history(count => $_) }, qr/count is .*/) for -1, 1.5, 1e300, $NAN;
refused("a deadline of $_", sub { query('select 1')->deadline($_) }, "a deadline $finite $_") for -1, $NAN;
refused('a key of ' . length, sub { query('select 1')->shared($_) }, 'a key must have 1 to 200 bytes') for '', 'x' x 201;
refused("a ttl of $_", sub { query('select 1')->shared('a', $_) }, "a ttl $finite $_") for -1, $INFINITY;
refused('no statement', sub { query($_) }, 'the statement of a query is missing') for '', " \n", undef;
refused('what is no wait', sub { park($_) }, 'only a wait can be parked') for undef, 'text', park(after 1);
refused('a sub that is not there', sub { after(1)->then('nothing') }, 'there is no sub main::nothing');
refused('a sub that is not there, for a WebSocket', sub { channel('c')->socket('nothing') }, 'there is no sub main::nothing');

# Headers

my %WRONG = (
    'an odd number'   => ['X-A'],
    'a reference'     => ['X-A', [1]],
    'an object'       => ['X-A', bless {}, 'Other'],
    'no name'         => [undef, 'a'],
    'an empty name'   => ['', 'a'],
    'a name of words' => ['X A', 'a'],
    'a wide name'     => ["X-\x{263a}", 'a'],
    'a line end'      => ['X-A', "a\nb"],
    'a return'        => ['X-A', "a\rb"],
    'a NUL'           => ['X-A', "a\0b"],
);
{ package Address; use overload '""' => sub { "/at/$_[0][0]" }, fallback => 1 }
my @RIGHT = ('X-Number', 5, 'X-Float', 2.5, 'X-Nothing', undef, 7, 'x', 'X-Object', bless([7], 'Address'));
my @AS_TEXT = ('X-Number', '5', 'X-Float', '2.5', 'X-Nothing', '', '7', 'x', 'X-Object', '/at/7');

# What a PARK adds, of a wait that the core answers alone.
sub added {
    my ($wait) = @_;
    my (undef, $then) = $wait->parts(\&Parkade::Response::encoded);
    my $told = $then->[1] ? $then->[1][1] : $then->[2][1];
    return [@{ Parkade::MessagePack::decode(Parkade::MessagePack::encode($told)) }[-@AS_TEXT .. -1]];
}

for my $wait (sub { after(1, 'text') }, sub { channel('c')->next }) {
    refused("$_ in headers of a wait", sub { $wait->()->headers(@{ $WRONG{$_} }) }) for sort keys %WRONG;
    is_deeply(added($wait->()->headers(@RIGHT)), \@AS_TEXT, 'numbers, undef and objects that are text are text');
}

package Exchange {
    sub new { return bless {}, shift }
    sub park    { my ($self, $wait, $then) = @_; $self->{added} = $then->[2][1]; return }
    sub respond { my ($self, @told) = @_; $self->{told} = \@told; return }
}

sub parked {
    my (@headers) = @_;
    my $response = park(channel('c')->next);
    push @{ $response->[1] }, @headers;
    Parkade::PSGI::Response::send_to(my $exchange = Exchange->new, $response);
    return Parkade::MessagePack::decode(Parkade::MessagePack::encode($exchange->{added}));
}

for my $name (sort keys %WRONG) {
    ok(!eval { parked(@{ $WRONG{$name} }); 1 }, "$name in a parked response");
    like($@, qr/header/, 'is told');
    unlike($@, qr/ at .* line /, 'without a line of ours');
}
ok(!eval { parked('X-A', "\x{263a}"); 1 }, 'wide characters in a parked response');
like($@, qr/\Awide characters in a response/, 'are told');
is_deeply(parked(@RIGHT), \@AS_TEXT, 'a parked response has the headers of an ordinary one');

for my $name (grep { !/name of|wide|empty|line end|return|NUL/ } sort keys %WRONG) {
    ok(!eval { Parkade::Response::encoded(Parkade::Response->new(200, $WRONG{$name}, '')); 1 }, "$name in a response");
    ok(!eval { Parkade::PSGI::Response::send_to(Exchange->new, [200, $WRONG{$name}, []]); 1 }, "$name in a response of PSGI");
}

for my $body ({ lot => 7 }, [7], \'seven') {
    my $kind = ref $body;
    ok(!eval { Parkade::Response::encoded(Parkade::Response->new(200, [], $body)); 1 }, "a body that is a reference to $kind");
    like($@, qr/\Aa body must be text, bytes or code, not a reference to $kind: .*\n\z/, 'is told');
}

ok(!eval { after(1, 'x' x (INLINE_MAX + 1))->parts(\&Parkade::Response::encoded); 1 }, 'a large answer after a timer');
like($@, qr/\Athe answer after a timer has at most 65536 bytes: give a larger one in a sub, with then\n\z/, 'is told');
taken('one that goes in its frame', sub { after(1, 'x' x INLINE_MAX)->parts(\&Parkade::Response::encoded); 1 });

# Messages

refused('a content type of ' . length, sub { channel('c')->publish('x', content_type => $_) }, 'a content type has at most 1024 bytes')
  for 'x' x 1_025, "\x{263a}" x 342;
taken('a content type of 1,024 bytes', sub { channel('c')->publish('x', content_type => 'x' x 1_024); 1 });
refused('an option of a message', sub { channel('c')->publish('x', foo => 1) }, 'unknown option foo; the options here are event, content_type');

# Data

my %NO_DATA = ('code' => sub { 1 }, 'a glob' => \*STDOUT, 'a pattern' => qr/x/, 'an object' => bless({}, 'Other'), 'a reference to a reference' => \\1);

for my $name (sort keys %NO_DATA) {
    my $value = $NO_DATA{$name};
    refused("$name as an argument of a job", sub { enqueue work => $value }, qr/a job's arguments must be plain data: .* is not plain data, .*/);
    refused("$name as a state", sub { after(0)->then('main::taken', $value) }, qr/a function after a wait can only be given plain data: .*/);
    refused("$name as a parameter", sub { query('select 1', [$value]) }, qr/a parameter is a number, text, .*, not a reference of the kind .*/);
    ok(!eval { Parkade::Response::stored([$value]); 1 }, "$name as a result");
    like($@, qr/\Athe result of a job must be plain data: \w+ is not plain data, which is [^\n]* and \\0\n\z/, 'is told in plain words');
}
my $cycle = [1];
push @$cycle, $cycle;
refused('a cycle as a state', sub { after(0)->then('main::taken', $cycle) }, qr/.*: a value is nested too deeply/);
refused('a cycle as a parameter', sub { query('select 1', $cycle) }, 'the arrays of a parameter are nested more than 6 deep');
refused('a cycle in a document', sub { query('select 1', { a => $cycle }) }, qr/.*: data is nested too deeply for JSON/);
taken('six arrays in one another', sub { query('select 1', [[[[[[1]]]]]]) });

for my $no_number ($INFINITY, -$INFINITY, $NAN) {
    my $why = 'JSON has no infinity and no NaN';
    refused("$no_number in a message", sub { channel('c')->publish({ a => $no_number }) }, "a message must be text or data: $why");
    refused("$no_number in a document", sub { query('select 1', { a => [$no_number] }) }, qr/.*: $why/);
    ok(!eval { Parkade::Response::encoded({ "a\"" => [1, $no_number] }); 1 }, "$no_number in a response");
    is($@, "$why\n", 'is told');
}
ok(!eval { Parkade::Response::encoded({ a => sub { 1 } }); 1 }, 'code in a response');
is($@, "JSON is numbers, text, arrays, hashes, \\1 and \\0, not a reference of the kind CODE\n", 'is told');
refused('code as a message', sub { channel('c')->publish(sub { 1 }) }, qr/a message must be text or data: JSON is .*/);
for my $text ('Inf', 'NaN', '"NaN"', "a\\", '\\"Inf', 'Infinity') {
    is(Parkade::Response::of([$text, { $text => -1.5 }])->{body}, JSON::PP->new->utf8->encode([$text, { $text => -1.5 }]), "the text $text is text");
}
{ package Told; sub new { return bless {}, shift } sub TO_JSON { die "an object's own reason\n" } }
ok(!eval { Parkade::Response::encoded([Told->new]); 1 }, 'an object that dies');
is($@, "an object's own reason\n", 'tells its own reason');

# Parameters. Perl has one kind of number, the databases have two.

sub parameter { my ($value) = @_; return unpack 'H*', Parkade::MessagePack::encode(query('select 1', $value)->{wait}[2][0]) }

is(parameter($_->[1]), parameter($_->[2]), "$_->[0] is an integer") for
  ['10 / 2', 10 / 2, 5], ['-10 / 2', -10 / 2, -5], ['5.0', 5.0, 5], ['2**53', 2**52 * 2.0, 2**53], ['-2**53', -(2.0**53), -(1 << 53)],
  ['what rounding gives', POSIX::floor(7.5), 7], ['0.0', 0.0, 0], ['1e3', 1e3, 1_000], ['in an array', [10 / 2], [5]];
is(parameter($_), 'cb' . unpack('H*', pack 'd>', $_), "$_ is a float") for 0.5, 2.0**53 * 2, -2.0**60, 1e300, $INFINITY, -0.0;
is(parameter($_->[0]), $_->[1], 'text stays text') for ['5', 'a135'], ['5.0', 'a3352e30'];

# What the application declares

refused('a job with odd options', sub { job odd => sub { }, @$_ })
  for [retries => -1], [retries => 1.5], [retries => 1e9], [deadline => -1], [deadline => 'inf'], [priority => 1001], [queue => ''], [queue => 'x' x 201];
refused('methods that are none', sub { any $_, '/odd' => sub { } }, 'the methods of /odd must be a reference to an array of names')
  for 'GET', undef, [undef], [['GET']];
refused('no path', sub { get undef, sub { } }, 'a path must begin with a slash, not undef');
refused('a route with an odd deadline', sub { get '/odd' => sub { }, deadline => $_ }) for -1, 'inf', 'soon';
refused('a channel with odd options', sub { channel('odd/*', @$_) }) for [count => -1], [count => 1.5], [bytes => 'inf'], [age => -1];
refused('a queue with an odd rate', sub { queue 'odd', rate => $_ }) for 0, -1, '9' x 400;

for my $code (1000 .. 1003, 1007 .. 1014, 3000, 4999) {
    is(close_socket($code)->{code}, $code, "a WebSocket is closed with $code");
}
is(close_socket()->{code}, 1000, 'and with 1000 if nothing is said');
for my $code (999, 1004 .. 1006, 1015, 2999, 5000, 'x', "1000\n") {
    ok(!eval { close_socket($code) }, 'not with ' . ($code =~ s/\n/\\n/r));
}

done_testing;
