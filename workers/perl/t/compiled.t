# The compiled loop against the one in Perl: for whatever a core may send and an application may answer, both write the
# same frames, make the same environments, and log the same.

use strict;
use warnings;
use lib 't/lib';

use Config;
use Test::More;
use Parkade::Compiled    ();
use Parkade::MessagePack qw(bin);
use Parkade::Wire        qw(:all);
use Vectors              ();

# Whether it is used

sub state_with {
    my ($variable, @flags) = @_;
    local $ENV{PARKADE_ACCELERATOR} = $variable;
    my @words = (@flags, (map { "-I$_" } @INC), '-MParkade::Compiled', '-e', 'print Parkade::Compiled::state()');
    open my $told, '-|', $^X, @words or die $!;
    return scalar <$told>;
}
is(state_with('0'), 'not used: PARKADE_ACCELERATOR is 0', 'a variable keeps it from being used');

if (!Parkade::Compiled::IS_USED) {
    like(Parkade::Compiled::state(), qr/\Anot used: ./, 'it is told why it is not used');
    ok(!Parkade::Compiled->loop(undef), 'there is no loop');
    done_testing;
    exit;
}
require Both;
Both->import;
our $HELLO;
no warnings qw(once);    # of names that Both declares

is(state_with('1'), 'used', 'it is used');
is(state_with('1', '-T'), 'not used: this Perl checks where data comes from (-T)', 'it marks no data as tainted');
if ($Config{usethreads}) {
    my $code = 'my $head = Parkade::MessagePack::encode(["GET", "/a", "", [], "", "http", "1.1", "id", 1, "b", 2]);'
      . 'print Parkade::Compiled::environment($head)->{PATH_INFO}, threads->create({ context => "scalar" }, '
      . 'sub { Parkade::Compiled::environment($head)->{REQUEST_URI} })->join';
    my @words = ('-Mthreads', (map { "-I$_" } @INC), '-MParkade::Compiled', '-MParkade::MessagePack', '-e', $code);
    open my $told, '-|', $^X, @words or die $!;
    is(scalar <$told>, '/a/a', 'a thread of the application has it, too');
}

{
    my @events;
    my $data = requests({ route => 300, parameters => ['a', 'b'], deadline => 2.5, body => 'c' }, { follows => 1 });
    my $session = Parkade::Session->new;
    my $at = Parkade::Compiled::requests($session, $data, 0, \@events);
    is(substr($data, $at + 4, 1), chr F_REQUEST, 'a request whose body follows is left to Perl');
    is_deeply(\@events, [[opened => 1, [300, ['a', 'b'], 2.5, 'c', payload(@{ head() }) ]]], 'a request of a route is read in C');
    is_deeply([@$session{qw(highest streams)}], [1, { 1 => 'held' }], 'and its stream is held');
}

my $plain = sub { noted($_[0]); return [200, ['Content-Type', 'text/plain'], ['hello']] };

# The vectors

if (Vectors::there()) {
    for my $vector (Vectors::frames()) {
        next if $vector->{from} ne 'core';
        my $data = Vectors::unhex($vector->{hex});
        my $size = length $data > 20_000 ? 977 : 1;
        same("$vector->{name}, between others", sub { $plain }, $HELLO, requests({}, {}) . $data . requests({}), $size);
        same("$vector->{name}, alone", sub { $plain }, $HELLO, $data, $size);
    }
    for my $vector (Vectors::sessions()) {
        my @parts = ('', '');
        my $is_ready;
        for my $step (@{ $vector->{steps} }) {
            my $data = Vectors::unhex($step->{hex});
            if ($step->{from} eq 'core') { $parts[$is_ready ? 1 : 0] .= $data }
            else                         { $is_ready ||= grep { /^READY / } @{ Both::shown($data) } }
        }
        same($vector->{name}, sub { $plain }, @parts, length $parts[1] > 20_000 ? 977 : 1);
    }
}

# Requests

my @fields = map { ("x-field-$_" => bin("value $_")) } 1 .. 20;
my @hosts  = ('', 'a', 'a:80', 'a:0', ':80', 'a:', '[::1]:7', 'a:b:7x', '77', "a\n:1");
my %requests = (
    'three at once'       => [{}, {}, {}],
    'a body'              => [{ body => 'a body', fields => ['content-length', bin(6)] }, {}, { body => 'x' x INLINE_MAX }],
    'a length of nothing' => [{ fields => ['content-length', bin('0')] }],
    'two lengths'         => [{ body => 'ab', fields => [('content-length', bin('2')) x 2, ('content-type', bin('a')) x 2] }],
    'a body that follows' => [{}, { follows => 1 }, frame(F_DATA, 2, 'abc', MORE), frame(F_DATA, 2, ''), {}],
    'a deadline'          => [map { { deadline => $_ } } 30, 1.5, 0, -1, 9**9**9, 300, 70_000, 5_000_000_000],
    'a route'             => [{ route => 3 }, { route => 300, parameters => ['a'] }, { route => -1 }],
    'fields of one name'  => [{ fields => [cookie => bin('a'), accept => bin('b'), cookie => bin('c'), accept => bin('')] }],
    'an empty field'      => [{ fields => [accept => bin(''), accept => bin('b'), '' => bin('c')] }],
    'fields left out'     => [{ fields => [proxy => bin('x'), x_y => bin('x'), 'transfer-encoding' => bin('x'), A => bin('x')] }],
    'many fields'         => [{ fields => \@fields }, { fields => ['x' x 300, bin('y' x 70_000)] }],
    'names by length'     => [map { { fields => [('x' x $_) => bin('y')] } } 1, 31, 32, 46 .. 49, 255, 256],
    'more names than fit' => [map { { fields => ["x-$_" => bin($_)] } } 1 .. 300, 1 .. 300],
    'a field of text'     => [{ fields => ['x-a', 'text'] }, { fields => ["x-\xe9", bin('b')] }, { fields => ['x'] }],
    'a field of bytes'    => [{ fields => ['x-a', bin("\xe9\x00\xff")] }],
    'paths'               => [map { { path => $_ } } '/%41%c3%A9', '/%', '/%4', '/%zz', '/a%4', '/%00', '', "/\x{263a}", '/' x 300],
    'queries'             => [map { { query => $_ } } 'a=%20', '0', 'q' x 70_000],
    'versions'            => [map { { version => $_ } } '1.0', '2', '3', ''],
    'a Unix socket'       => [map { { at_socket => 1, fields => [host => bin($_)] } } @hosts],
    'no host'             => [map { { at_socket => 1, fields => [], scheme => $_ } } 'http', 'https'],
    'a short head'        => [{ is_short => 1 }],
    'heads that are wrong' => [map { { head => $_ } } [], 'text', undef, [1 .. 11], [(undef) x 11], ['GET', '/', '', {}, ('') x 4]],
    'more elements'       => [{ more => ['later', 7] }, {}],
    'a cancelled request' => [{}, {}, frame(F_CANCEL, 2, payload('client_left')), {}],
    'a late cancel'       => [{}, {}, frame(F_CANCEL, 1, payload('client_left')), frame(F_WINDOWED, 1, payload(7))],
    'an unknown frame'    => [{}, frame(0x7f, 0, 'x'), {}],
    'a ping and a notice' => [{}, frame(F_PING, 0, payload(7)), {}, frame(F_DRAIN, 0, payload(1)), {}],
    'an end'              => [{}, frame(F_GOODBYE, 0, payload('stopping', '')), {}],
    'a frame too long'    => [{}, pack('NCCx2N', FRAME_MAX + 1, F_REQUEST, 0, 2)],
    'a frame cut off'     => [{}, substr frame(F_REQUEST, 2, payload(undef)), 0, 15],
    'a stream again'      => [{}, frame(F_REQUEST, 1, payload(undef, [], undef, bin(''), head()))],
    'a stream of a branch' => [frame(F_REQUEST, BRANCH_FIRST, payload(undef, [], undef, bin(''), head()))],
    'stream 0'            => [frame(F_REQUEST, 0, payload(undef, [], undef, bin(''), head()))],
    'reserved bytes'      => [pack('NCCnN', 2, F_REQUEST, 0xfe, 0xffff, 1) . "\x95\xc0"],
);
for my $name (sort keys %requests) {
    my @sizes = $name eq 'more names than fit' ? 4_096 : (1, 977);
    same($name, sub { $plain }, $HELLO, requests(@{ $requests{$name} }), @sizes);
}

{
    local $Both::root = "/b\x{e4}r";
    my @paths = ('/b%C3%A4r', '/b%C3%A4r/', '/b%C3%A4r/c', '/b%C3%A4rs', '/other', '/', '');
    same('paths below a prefix', sub { $plain }, $HELLO, requests(map { { path => $_ } } @paths), 977);
}

# Responses

{
    package Text;
    use overload '""' => sub { "text of $_[0][0]" }, bool => sub { 1 }, fallback => 1;
    package Lines;
    sub getline { return shift @{ $_[0] } }
    sub close   { return }
    package TiedScalar;
    sub TIESCALAR { my $count = 0; return bless \$count }
    sub FETCH     { return 'fetched ' . ++${ $_[0] } }
    package TiedArray;
    require Tie::Array;
    our @ISA = 'Tie::StdArray';
    sub FETCH { return "fetched $_[0][$_[1]]" }
    package Told;
    sub new     { my ($class, $code) = @_; return bless { code => $code }, $class }
    sub DESTROY { $_[0]{code}->() }
}
sub tied_text  { tie my $text, 'TiedScalar'; return \$text }
sub tied_array { tie my @array, 'TiedArray'; @array = @_; return \@array }
sub upgraded   { my ($text) = @_; utf8::upgrade($text); return $text }
sub file       { open my $handle, '<', \"one\ntwo\n" or die; return $handle }
sub number     { my ($text) = @_; my $number = $text + 0; return $text }

my $text = bless ['it'], 'Text';
my @statuses = (
    200, '200', 200.0, '204', 304, 204, 205, 599, 600, 100, 199, 'abc', '', undef, '0200', '200 OK', "200\n", 2**63, ~0, -200, 1e300,
    number('201'), \200, $text, 2**32 + 200, !!1,
);
my @values = (
    '', undef, 7, -7, 1.5, 1e20, ~0, '1.50', "\xe9", upgraded("\xe9"), upgraded('ascii'), "\x{263a}", $text, \'text', !!0, !!1, [], v1.2,
    ${ tied_text() }, number('12'), *STDOUT, qr/x/, 'v' x 31, 'v' x 32, 'v' x 255, 'v' x 256, 'v' x 65_535, 'v' x 65_536, 'v' x 70_000,
);
my @whole = (
    (map { my $it = $_; sub { $it } } undef, 'text', '', 0, {}, [], [200], [200, []], [200, [], ['a'], 'more'], [200, {}, []], [200, undef, []]),
    (map { my $it = $_; sub { $it } } [200, [], undef], [200, [], 'text'], [200, [], {}], [200, [], 7], [undef, undef, undef], \'text', qr/x/, *STDOUT),
    (map { my $it = $_; sub { $it } } bless([200, [], ['a']], 'Lines'), [200, bless([], 'Lines'), ['a']], [200, ['a'], []], [200, [], [\*STDOUT]]),
    sub { [200, [], bless ['one', '', 'two'], 'Lines'] },
);
my %responses = (
    'statuses'       => [map { my $it = $_; sub { [$it, ['Content-Type', 'a', 'Content-Length', 5], ['hello']] } } @statuses],
    'values'         => [map { my $it = $_; sub { [200, ['X-A', $it], ['hello']] } } @values],
    'names'          => [map { my $it = $_; sub { [200, [$it, 'a'], ['hello']] } } grep { defined } @values],
    'bodies'         => [map { my $it = $_; sub { [200, [], [$it]] } } @values],
    'pieces'         => [map { my $it = $_; sub { [200, [], ['one', $it, undef, 'two']] } } @values],
    'too large'      => [map { my $size = $_; sub { [200, ['X', 'x' x $size], ['y' x 60_000]] } } 980_000, 1_000_000, 1_048_500, 2_000_000],
    'many fields'    => [map { my $count = $_; sub { [200, [map { ("X-$_" => $_) } 1 .. $count], []] } } 0, 7, 8, 15, 16, 200, 33_000],
    'sizes'          => [map { my $size = $_; sub { [200, [], ['x' x $size]] } } 0, 1, 255, 256, 65_535, 65_536, 65_537, 200_000],
    'sizes together' => [map { my $size = $_; sub { [200, [], [('x' x $size) x 2]] } } 127, 128, 32_768, 32_769],
    'whole'          => \@whole,
    'nothing'        => [sub { return }, sub { () }, sub { (1, 2, [200, [], ['a']]) }],
    'tied'           => [
        sub { [200, ['X', ${ tied_text() }], []] }, sub { tied_array(200, [], []) }, sub { [200, tied_array(qw(X y)), []] },
        sub { [200, [], tied_array('a', 'b')] }, sub { my $body = tied_text(); $_[0]{kept} = $body; [200, [], [$$body]] },
        sub { my @body; tie $body[0], 'TiedScalar'; [200, [], \@body] }, sub { my @head = ('X', 0); tie $head[1], 'TiedScalar'; [200, \@head, []] },
        sub { my @all = (200, [], []); tie $all[0], 'TiedScalar'; \@all }, sub { tie my $all, 'TiedScalar'; \$all },
    ],
    'magic'          => [
        sub { 'abc' =~ /(b)/; [200, ['X', $1], [$1, $&]] }, sub { $! = 2; [200, ['X', $!], [$!]] },
        sub { my $body = 'abc'; $body =~ /b/g; [200, ['X', $body], [$body]] }, sub { my $body = 'abc'; [200, [], [substr $body, 1]] },
        sub { my @body = ('a'); $#body = 3; $body[5] = 'b'; [200, [], \@body] },
        sub { my $body = "x\xe9"; my $size = length upgraded($body); [200, ['Content-Length', $size], [$body]] },
        sub { \@_ }, sub { [200, [], \@ARGV] }, sub { my @none; [200, \@none, \@none] },
    ],
    'handles'        => [sub { [200, [], file()] }, sub { [200, ['Content-Length', 8], file()] }, sub { [304, ['Content-Length', 8], file()] }],
    'delayed'        => [
        sub { sub { $_[0]->([200, [], ['later']]) } }, sub { sub { my $writer = $_[0]->([200, []]); $writer->write($_) for 'a', 'b'; $writer->close } },
        sub { sub { } }, sub { sub { die "late\n" } }, sub { sub { $_[0]->([200, [], []]); $_[0]->([200, [], []]) } },
        sub { bless sub { $_[0]->([200, [], []]) }, 'Told::Code' },
    ],
    'deaths'         => [
        sub { die "dead\n" }, sub { die { code => 7 } }, sub { die $text }, sub { die '' }, sub { die 0 }, sub { die "0\n" }, sub { die bless [], 'Lines' },
        sub { my $told = Told->new(sub { eval { 1 } }); die "dead\n" }, sub { eval { die "inner\n" }; [200, [], ["$@"]] }, sub { $@ = 'left'; [200, [], []] },
        sub { local $@ = 'here'; die "local\n" }, sub { local $SIG{__DIE__} = sub { die "again: $_[0]" }; die "dead\n" }, sub { die "\x{263a}\n" },
        sub { my $none; no warnings; $none->() }, sub { $_[0]{gone} = Told->new(sub { die "in a destructor\n" }); [200, [], []] }, sub { die },
        sub { $_[0]{gone} = Told->new(sub { warn "in a destructor\n" }); [200, [], []] }, sub { warn "a warning\n"; [200, [], []] },
    ],
    'context'        => [
        sub { [200, [], [wantarray ? 'list' : defined wantarray ? 'scalar' : 'none']] }, sub { [200, [], [scalar @_, ref $_[0]]] },
        sub { [200, [], [$^S]] }, sub { my @each = sort { $b cmp $a } 'a', 'b'; [200, [], \@each] }, sub { goto &$plain }, sub { local $_ = 'x'; [200, [], [$_]] },
        sub { [200, [], [map { $_ } grep { /a/ } 'a', 'b']] }, sub { local $/; local $, = 'x'; local $\ = 'y'; [200, [], ['a', 'b']] },
    ],
    'environments'   => [
        sub { undef $_[0]; [200, [], []] }, sub { $_[0] = {}; [200, [], []] }, sub { %{ $_[0] } = (); [200, [], []] }, sub { delete $_[0]{'psgi.input'}; die "dead\n" },
        sub { bless $_[0], 'Lines'; [200, [], []] }, sub { @{ $_[0] }{qw(REQUEST_METHOD PATH_INFO)} = (); [200, [], []] }, sub { $_[0]{me} = $_[0]; [200, [], []] },
        sub { $_[0]{'psgi.version'} = 7; $_[0]{'psgi.streaming'} = 'no'; $_[0]{'parkade.on_cancel'} = undef; [200, [], []] },
    ],
    'what follows'   => [
        sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { warn "cleaned\n" }, sub { die "unclean\n" }; [200, [], []] },
        sub { $_[0]{'psgix.cleanup.handlers'} = undef; [200, [], []] }, sub { $_[0]{'psgix.cleanup.handlers'} = [sub { warn ref $_[0], "\n" }]; [200, [], []] },
        sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { warn "cleaned\n" }; die "dead\n" },
        sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { warn "cleaned\n" }; sub { $_[0]->([200, [], []]) } },
    ],
    'harakiri'       => [sub { $_[0]{'psgix.harakiri.commit'} = 0; [200, [], []] }, sub { $_[0]{'psgix.harakiri.commit'} = 1; [200, [], []] }],
    'publishing'     => [
        sub { $_[0]{'parkade.publish'}->('a/b', 'text'); [200, [], []] }, sub { $_[0]{'parkade.publish'}->('', 'text'); [200, [], []] },
        sub { $_[0]{'parkade.publish'}->('a', { b => 1 }, event => 'c'); die "dead\n" },
    ],
    'being told'     => [
        sub { $_[0]{'parkade.on_cancel'}->(sub { warn "cancelled\n" }); [200, [], []] }, sub { $_[0]{'parkade.on_cancel'}->(sub { }); die "dead\n" },
        sub { my ($env) = @_; $env->{'parkade.on_cancel'}->(sub { warn "cancelled\n" }); sub { $_[0]->([200, [], []]) } },
    ],
    'waits'          => [
        sub { $_[0]{'parkade.park'}->(Parkade::Channel->new('a')->next) }, sub { [200, ['Parkade-Parked', 'of a client'], []] },
        sub { my $unused = $_[0]{'parkade.park'}->(Parkade::Channel->new('a')->next); [200, ['X', 'y'], ['a']] },
        sub { [200, ['X', 'y'], ['after']] },
    ],
);
sub each_with {
    my ($name, @codes) = @_;
    for my $number (0 .. $#codes) {
        my $code = $codes[$number];
        my $application = sub { my ($env) = @_; noted($env); return $env->{QUERY_STRING} eq 'it' ? &$code : [200, [], ['other']] };
        my @asked = ({}, { query => 'it', body => 'body' }, { query => 'it' }, {});
        same("$name, $number", sub { $application }, $HELLO, requests(@asked), 64);
    }
    return;
}
each_with($_, @{ $responses{$_} }) for sort keys %responses;

{
    my $told = ran(sub { sub { $_[0]{'parkade.publish'}->('', 'text') } }, $HELLO, requests({}), undef, 1);
    like($told->{log}[0], qr{at t/compiled\.t line \d}, 'a mistake is where the application made it');
}

# What an application keeps from one request to another

# Each request is for the next of these.
sub by_turns {
    my @codes = @_;
    return sub {
        my (@turns, %kept) = @codes;
        return sub { my $turn = shift @turns; return $turn ? $turn->($_[0], \%kept) : $plain->($_[0]) };
    };
}
sub said { return [200, [], [map { $_ // 'undef' } @_]] }
sub TIEHANDLE { return bless [], 'Lines' }
{
    no warnings 'once';
    *Lines::TIEHANDLE = \&TIEHANDLE;
    *Lines::READLINE  = sub { return undef };
    *Lines::SEEK      = sub { return 0 };
}
my %turns = (
    'an environment' => [
        sub { $_[1]{env} = $_[0]; said() }, sub { $_[1]{env}{'parkade.publish'}->('a', 'b'); said($_[1]{env}{PATH_INFO}) },
    ],
    'what publishes'        => [sub { $_[1]{publish} = $_[0]{'parkade.publish'}; said() }, sub { $_[1]{publish}->('a', 'b'); said() }],
    'what tells of cancels' => [sub { $_[1]{told} = $_[0]{'parkade.on_cancel'}; said() }, sub { $_[1]{told}->(sub { warn "no\n" }); said() }],
    'cleanup handlers'      => [
        sub { $_[1]{list} = $_[0]{'psgix.cleanup.handlers'}; said() }, sub { push @{ $_[1]{list} }, sub { warn "no\n" }; said() },
    ],
    'cleanup of a delayed response' => [
        sub { my ($env, $kept) = @_; sub { @$kept{qw(env responder)} = ($env, $_[0]) } },
        sub {
            my (undef, $kept) = @_;
            push @{ (delete $kept->{env})->{'psgix.cleanup.handlers'} }, sub { warn ref $_[0], "\n" };
            (delete $kept->{responder})->([200, [], ['late']]);
            return said();
        },
    ],
    'a responder' => [
        sub { my (undef, $kept) = @_; sub { $kept->{responder} = $_[0] } }, sub { (delete $_[1]{responder})->([200, [], ['late']]); said() },
    ],
    'a responder to the end'      => [sub { my (undef, $kept) = @_; sub { $kept->{responder} = $_[0] } }],
    'a responder that is dropped' => [sub { my (undef, $kept) = @_; sub { $kept->{responder} = $_[0] } }, sub { delete $_[1]{responder}; said() }],
    'a writer' => [
        sub { my (undef, $kept) = @_; sub { $kept->{writer} = $_[0]->([200, []]); $kept->{writer}->write('early') } },
        sub { $_[1]{writer}->write('late'); said() }, sub { (delete $_[1]{writer})->close; said() },
    ],
    'a response' => [(sub { $_[1]{response} ||= [200, ['X', 'y'], ['kept']] }) x 3],
    'input'      => [
        sub { $_[1]{input} = $_[0]{'psgi.input'}; said() }, sub { said(scalar readline $_[1]{input}) },
        sub { seek $_[1]{input}, 0, 0; said(readline $_[1]{input}) },
    ],
);
my %to_input = (
    'is closed'    => sub { close $_[0] },
    'is opened'    => sub { open $_[0], '<', \'other' },
    'has text'     => sub { binmode $_[0], ':utf8' },
    'has layers'   => sub { binmode $_[0], ':crlf' },
    'is blessed'   => sub { bless $_[0], 'IO::File' },
    'has a hash'   => sub { ${ *{ $_[0] } }{x} = 1 },
    'has a scalar' => sub { ${ *{ $_[0] } } = 1 },
    'is an alias'  => sub { no warnings 'once'; $_[1]{alias} = \do { local *Handle = $_[0] } },
    'has its IO'   => sub { $_[1]{io} = *{ $_[0] }{IO} },
    'has a line'   => sub { readline $_[0] },
    'has lines'    => sub { my @lines = readline $_[0] },
    'is at an end' => sub { seek $_[0], 0, 2; read $_[0], my $more, 10 },
    'has a byte'   => sub { require IO::Handle; $_[0]->ungetc(65) },
    'is slurped'   => sub { local $/; readline $_[0] for 1 .. 2 },
    'is written'   => sub { no warnings; print { $_[0] } 'text' },
    'is tied'      => sub { tie *{ $_[0] }, 'Lines' },
    'is other'     => sub { my $empty = ''; close $_[0]; open $_[0], '<', \$empty; $_[1]{empty} = \$empty },
);
for my $name (keys %to_input) {
    my $do = $to_input{$name};
    $turns{"input that $name"} = [
        sub { $do->($_[0]{'psgi.input'}, $_[1]); said() },
        sub { ${ $_[1]{empty} } = 'filled' if $_[1]{empty}; local $/; my $input = $_[0]{'psgi.input'}; said(scalar readline $input, scalar readline $input, $.) },
        sub { my $input = $_[0]{'psgi.input'}; said(readline $input, eof $input, tell $input) },
    ];
}
for my $name (sort keys %turns) {
    for my $body ('', 'some body') {
        same("kept: $name, $body", by_turns(@{ $turns{$name} }), $HELLO, requests(map { { path => "/$_", body => $body } } 1 .. 5), 64);
    }
}

# Frames that come while code runs

{
    # It writes more than its client has room for, so the link is read in the middle of the second request.
    my $flood = sub {
        my ($env) = @_;
        noted($env);
        return [200, [], ['other']] if $env->{PATH_INFO} ne '/flood';
        return sub { my $writer = $_[0]->([200, []]); $writer->write('x' x 5_000_000); $writer->close };
    };
    my @rest = ({ path => '/flood' }, {}, frame(F_WINDOWED, 2, payload(1_000_000)), {}, frame(F_PING, 0, payload(7)), frame(F_WINDOWED, 2, payload(5_000_000)), {});
    same('frames that come while code runs', sub { $flood }, $HELLO, requests({}, @rest), 64, 300);
    my @cancelled = ({ path => '/flood' }, {}, frame(F_CANCEL, 2, payload('client_left')), {});
    same('a cancel that comes while code runs', sub { $flood }, $HELLO, requests({}, @cancelled), 64, 300);
}

# Every request that is cut, or of which one byte is another

{
    my $payload = payload(undef, [], 1.5, bin('body'), head(fields => ['host', bin('a'), 'x-y', bin('b')], query => 'q'));
    my @cut = grep { differs(sub { $plain }, $HELLO, frame(F_REQUEST, 1, substr $payload, 0, $_) . frame(F_REQUEST, 2, $payload)) }
      0 .. length($payload) - 1;
    is_deeply(\@cut, [], 'requests that are cut');
    my @others = (0x00, 0x7f, 0x80, 0x90, 0x9f, 0xa0, 0xbf, 0xc0 .. 0xdf, 0xe0, 0xff);
    for my $at (0 .. length($payload) - 1) {
        my @wrong = grep { my $other = $payload; substr($other, $at, 1) = chr; differs(sub { $plain }, $HELLO, frame(F_REQUEST, 1, $other)) } @others;
        is_deeply(\@wrong, [], "another byte at $at");
    }
}

done_testing;
