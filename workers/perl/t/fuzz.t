# The compiled loop against the one in Perl, for frames that were changed at random and for responses made at random.
# PARKADE_FUZZ_SECONDS: for how long; PARKADE_FUZZ_SEED: the seed of a run that failed.

use strict;
use warnings;
use lib 't/lib';

use Test::More;
use Parkade::Compiled    ();
use Parkade::MessagePack qw(bin);
use Parkade::Wire        qw(:all);
use Vectors              ();

plan skip_all => 'there is no compiled loop: ' . Parkade::Compiled::state() if !Parkade::Compiled::IS_USED;
require Both;
Both->import;
our $HELLO;

my $seed = $ENV{PARKADE_FUZZ_SEED} // time ^ $$ << 15;
srand $seed;
my $seconds = $ENV{PARKADE_FUZZ_SECONDS} // 0;
my $until   = time + $seconds;

sub one_of { return $_[rand @_] }

# Frames

my @corpus = map { requests(@$_) } (
    [{}], [{ body => 'a body' }], [{ deadline => 1.5, query => 'a=b', path => '/%41%zz' }], [{ at_socket => 1 }], [{ is_short => 1 }],
    [{ fields => [map { ("x-$_" => bin($_ x 9)) } 1 .. 20] }], [{ route => 7, parameters => ['a'] }], [{ follows => 1 }], [{ more => [1] }],
    [{ fields => [cookie => bin('a'), cookie => bin('b'), 'content-length' => bin('0'), 'content-type' => bin('c'), proxy => bin('d')] }],
);
push @corpus, map { Vectors::unhex($_->{hex}) } grep { $_->{from} eq 'core' } Vectors::frames() if Vectors::there();
@corpus = grep { length $_ < 4_096 } @corpus;
my @marks = (0x00, 0x01, 0x7f .. 0x81, 0x8f .. 0x91, 0x9f .. 0xa1, 0xbf .. 0xe1, 0xff);

sub changed {
    my ($data) = @_;
    for (0 .. rand 4) {
        my $at = int rand length $data;
        my $how = int rand 6;
        if    ($how == 0) { substr $data, $at, 1, chr rand 256 }
        elsif ($how == 1) { substr $data, $at, 1, chr one_of(@marks) }
        elsif ($how == 2) { substr $data, $at, 1 + rand 4, '' }
        elsif ($how == 3) { substr $data, $at, 0, join '', map { chr one_of(@marks) } 0 .. rand 4 }
        elsif ($how == 4) { substr $data, $at, 0, substr one_of(@corpus), 12 }
        else              { my $bits = ord substr $data, $at, 1; substr $data, $at, 1, chr($bits ^ 1 << rand 8) }
        last if !length $data;
    }
    # Most changes are to be seen by what reads the payload.
    substr $data, 0, 4, pack 'N', length($data) - HEADER_SIZE if length $data >= HEADER_SIZE && rand() < 0.9;
    return $data;
}

my $plain = sub { noted($_[0]); return [200, ['Content-Type', 'text/plain'], ['hello']] };
my $count = 0;
for ($count = 0; $count < 1_500 || time < $until - $seconds / 2; $count++) {
    my $data = join '', map { rand() < 0.3 ? one_of(@corpus) : changed(one_of(@corpus)) } 0 .. rand 3;
    # The numbers of most streams go up, or nothing would be begun after the first.
    my ($at, $stream, $size) = (0, 0);
    while (length $data >= $at + HEADER_SIZE && ($size = unpack "\@$at N", $data) < 10_000) {
        substr $data, $at + 8, 4, pack 'N', ++$stream if rand() < 0.9;
        $at += HEADER_SIZE + $size;
    }
    next if !differs(sub { $plain }, $HELLO, $data, one_of(undef, undef, 1 + int rand 30));
    ok(0, "frames of seed $seed: " . unpack 'H*', $data);
    last;
}
ok(1, "$count changed frames");

# Responses

my @words = ('', 'a', 'Content-Type', 'text/plain', "caf\xe9", "\x{263a}", 'x' x 31, 'x' x 32, 'x' x 300, 'Content-Length', 200, 204, 304, 7, 1.5);

sub value {
    my ($depth) = @_;
    my $how = int rand 14;
    my $text = one_of(@words);
    return $text                              if $how < 6;
    return undef                              if $how == 6;
    if ($how == 7) { utf8::upgrade($text); return $text }
    if ($how == 8) { no warnings; my $number = $text + 0; return $text }
    return 'x' x rand 70_000                  if $how == 9 && rand() < 0.2;
    return one_of(\$text, {}, qr/x/, -1, ~0)  if $how == 9;
    return $depth > 0 ? [map { value($depth - 1) } 0 .. rand 4] : [];
}

sub any_response {
    my $status = rand() < 0.9 ? one_of(200, '201', 204, 304, 404, 599) : value(0);
    my $fields = rand() < 0.9 ? [map { rand() < 0.9 ? one_of(@words) : value(0) } 1 .. 2 * int rand 10] : value(2);
    my $body   = rand() < 0.9 ? [map { rand() < 0.9 ? one_of(@words) : value(0) } 1 .. rand 5] : value(2);
    return rand() < 0.97 ? [$status, $fields, $body] : value(3);
}

for ($count = 0; $count < 1_500 || time < $until; $count++) {
    my @responses = map { any_response() } 1 .. 3;
    my $application = sub { my @left = @responses; return sub { shift @left } };
    my @both = differs($application, $HELLO, requests({}, {}, {})) or next;
    ok(0, "responses of seed $seed") or diag explain \@responses;
    is_deeply(@both);
    last;
}
ok(1, "$count responses");

done_testing;
