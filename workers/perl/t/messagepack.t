# The codec in C against the one in Perl: for whatever may be encoded, the same bytes, and the same refusals.
# PARKADE_FUZZ_SEED: the seed of a run that failed.

use strict;
use warnings;
use lib 't/lib';

use Hash::Util ();
use JSON::PP   ();
use Test::More;
use Tie::Array  ();
use Tie::Hash   ();
use Tie::Scalar ();
use Parkade::Compiled    ();
use Parkade::MessagePack qw(encode bin ordered float extension true false);
use Vectors              ();

plan skip_all => 'there is no compiled codec: ' . Parkade::Compiled::state() if !Parkade::Compiled::IS_USED;

my $seed = $ENV{PARKADE_FUZZ_SEED} // time ^ $$ << 15;
srand $seed;

# The bytes, or why there are none.
sub outcome {
    my ($code) = @_;
    local $SIG{__WARN__} = sub { };    # of what Perl makes of odd values
    return eval { unpack 'H*', $code->() } // 'died: ' . $@ =~ s/ line \d+//r;
}

sub same {
    my ($name, $value) = @_;
    my $perl = outcome(sub { Parkade::MessagePack::_encode($value, 0) });
    return is(outcome(sub { encode($value) }), $perl, $name);
}

# What C writes itself.
sub in_c {
    my ($name, $value) = @_;
    same($name, $value);
    ok(defined Parkade::Compiled::encode($value), "$name, in C");
}

sub in_perl {
    my ($name, $value) = @_;
    same($name, $value);
    ok(!defined Parkade::Compiled::encode($value), "$name, left to Perl");
}

# Numbers

for my $bits (0 .. 63) {
    for my $number (map { (1 << $bits) + $_ } -1 .. 1) {
        in_c("integer $_", $_) for $number, -$number;
        in_c("float $_", $_) for map { $_ + 0.5 } $number, -$number;
    }
}
in_c("integer $_", $_) for -0x20, -0x21, -0x80, -0x81, -0x8000, -0x8001, -0x8000_0000, -0x8000_0001, ~0, -1 - (~0 >> 1), 48;
in_c("float $_", $_) for 1e300, -1e300, 5e-324, 9**9**9, -9**9**9;

for my $float (1e300, -1e300, 9**9**9, 2.0**60, 1e19, 5.5) {
    my $compared = $float;
    my @seen = ($compared == 5, abs $compared, int $compared, $compared | 0);
    same("float $float, after it was compared", $compared);
    is(encode($compared), "\xcb" . pack('d>', $float), "float $float stays one");
}

# Text

for my $letter ('x', "\x{e9}", "\x{7f}", "\x{80}", "\x{ff}", "\x{263a}", "\x{fffe}", "\x{ffff}", "\x{d7ff}", "\x{e000}", "\x{1f600}", "\x{10ffff}", "\0") {
    for my $size (0, 1, 15, 16, 17, 31, 32, 127, 128, 255, 256, 32_768, 65_535, 65_536) {
        my $text = $letter x $size;
        in_c(sprintf('%d of U+%04X', $size, ord $letter), $text);
        utf8::upgrade(my $wide = $text);
        in_c(sprintf('%d of U+%04X, upgraded', $size, ord $letter), $wide);
        in_c(sprintf('%d bytes', length $text), bin($text)) if ord $letter < 0x80;
    }
}
in_c('a byte above 127', bin("\xff"));
{
    no warnings;
    in_perl('no character of UTF-8', "a$_\x{e9}") for "\x{d800}", "\x{dfff}", "\x{110000}", chr 0x7fff_ffff;
    my $broken = "a\xff\xc3";
    Encode::_utf8_on($broken) if require Encode;
    ok(!defined Parkade::Compiled::encode($broken), 'broken UTF-8, left to Perl');
}

# Both at once

my $both = '7';
{ no warnings; my $sum = $both + 0 }
in_c('text that was used as a number', $both);
my $number = 7;
my $used   = "$number";
same('a number that was used as text', $number);
my $copy = $number;
same('its copy', $copy);
my $float = 1.5;
$used = int($float) | 0;
same('a float that was used as an integer', $float);
same('a whole float', my $whole = 4 / 2);
$used = $float . '';
same('a float that was used as text', $float);
same('a truth', $_) for !!1, !!0, 1 == 1, \!!1;

# Arrays and hashes

for my $size (0, 1, 15, 16, 17, 63, 64, 65_535, 65_536) {
    in_c("an array of $size", [(undef) x $size]);
    in_c("a map of $size in order", ordered(map { ("k$_", $_) } 1 .. $size));
}
in_c("a hash of $_", { map { ("k$_", $_) } 1 .. $_ }) for 0, 1, 15, 16, 17, 63, 64;
in_perl('a large hash', { map { ($_ => $_) } 1 .. 65 });
in_c('keys by size', { map { ($_ => 1) } '', 'a', 'aa', 'ab', 'b', 'A', '10', '9', "a\0" });
in_perl('keys that are not ASCII', { "\x{e9}" => 1, a => 1, "\x{263a}" => 1 });
my @holes;
$holes[3] = 1;
in_c('an array with holes', \@holes);
{
    my %each = (a => 1, b => 2, c => 3);
    my $first = each %each;
    in_c('a hash that is being walked', \%each);
    is(scalar(() = map { each %each } 1 .. 3), 6, 'it is walked from the beginning');
}
{
    my %locked = (a => 1, b => 2);
    Hash::Util::lock_ref_keys(\%locked);
    delete $locked{a};
    in_perl('a locked hash', \%locked);
}
sub nested { my ($depth) = @_; my $value = 1; $value = $depth % 2 ? [$value] : { a => $value } for 1 .. $depth; return $value }
in_c("nested $_ times", nested($_)) for 1, 500, 501;
in_perl("nested $_ times", nested($_)) for 502, 503, 600;
{
    my $value = 1;
    $value = $_ % 3 ? $_ % 2 ? [$value] : { a => $value } : ordered(a => $value) for 1 .. 502;
    in_perl('nested too deeply in turns', $value);
}

# Objects

in_c('a boolean', $_) for true, false, \1, \0, \'', \'0', \undef, \'a', \0.0;
in_c('a float object', float($_)) for 1, 0, -3, 2.5, ~0, 1e300;
in_perl('an odd float', float($_)) for '1', undef, \1;
in_perl('a boolean of JSON::PP', $_) for JSON::PP::true(), JSON::PP::false();
in_perl('an extension', extension(1, 'data'));
in_perl('odd bytes', bin($_)) for undef, 7, 1.5, "\x{e9}\x{263a}", \1;
{
    utf8::upgrade(my $wide = "\xff");
    in_perl('bytes that are kept as characters', bin($wide));
}
in_perl('an odd number of pairs', ordered('a'));
in_perl('a reference', $_) for \\1, sub { 1 }, qr/x/, \*STDIN, \v1.2, \substr('abc', 1), bless({}, 'Other'), bless([], 'Parkade::MessagePack::Else'), *STDIN{IO};
same('a scalar of another kind', $_) for *STDIN, v1.2;
same('an object of a wrong kind', bless $_->[0], "Parkade::MessagePack::$_->[1]") for [[], 'Boolean'], [{}, 'Float'], [{}, 'Ordered'], [[], 'Bytes'];

# Magic

{ package Scalar; our @ISA = 'Tie::StdScalar'; package Array; our @ISA = 'Tie::StdArray'; package Hash; our @ISA = 'Tie::StdHash' }
my $fetched = 0;
{ no warnings 'once'; *Scalar::FETCH = sub { $fetched++; return ${ $_[0] } } }
tie my $tied_scalar, 'Scalar';
tie my @tied_array,  'Array';
tie my %tied_hash,   'Hash';
$tied_scalar = 'text';
@tied_array  = (1, 2);
%tied_hash   = (a => 1);
in_perl('what is tied', $_) for \@tied_array, \%tied_hash, \$tied_scalar;
$fetched = 0;
encode([1, { a => 'a' }, $tied_scalar, \$tied_scalar]);
is($fetched, 2, 'a tied scalar is fetched once for each place');
'text' =~ /(e)(x)/;
same('what a pattern has found', [$1, \$2, $&]);
is(encode([$1, $2]), "\x92\xa1e\xa1x", 'each is what it was');

# Anything

sub one_of { return $_[rand @_] }

sub any {
    my ($depth) = @_;
    my $how = int rand($depth > 0 ? 20 : 14);
    return undef                                           if $how == 0;
    return int(rand 2**(1 + int rand 62)) * one_of(1, -1)  if $how < 4;
    return rand(1000) - 500                                if $how == 4;
    return 'x' x rand 300                                  if $how < 8;
    return join '', map { chr one_of(0x41, 0x7f, 0x80, 0xe9, 0x263a, 0x1f600, rand 256, rand(50) < 1 ? 0xd800 : 0x42) } 0 .. rand 40 if $how < 10;
    return bin(join '', map { chr rand 256 } 0 .. rand 40) if $how == 10;
    return one_of(true, false, \1, \0, float(rand 9), float(7)) if $how == 11;
    return one_of('7', '1.5', '', 0, -0.0, 1e15, 2**53)    if $how == 12;
    return rand(40) < 1 ? one_of(sub { 1 }, qr/x/, \\1, JSON::PP::true(), extension(5, 'a')) : 1 if $how == 13;
    return [map { any($depth - 1) } 1 .. rand 20]          if $how < 17;
    return ordered(map { (one_of('a', 7, "\x{e9}"), any($depth - 1)) } 1 .. rand 20) if $how == 17;
    return { map { (join('', map { chr one_of(97 .. 122, rand(200) < 1 ? 0xe9 : 97) } 0 .. rand 6) => any($depth - 1)) } 1 .. rand 20 };
}

my ($count, $in_c) = (0, 0);
for (1 .. 3_000) {
    my $value = any(one_of(1 .. 4));
    my $perl  = outcome(sub { Parkade::MessagePack::_encode($value, 0) });
    $count++;
    $in_c++ if defined Parkade::Compiled::encode($value);
    next if outcome(sub { encode($value) }) eq $perl;
    same("a value of seed $seed", $value) or diag explain $value;
    last;
}
cmp_ok($in_c, '>', $count / 2, "$in_c of $count values in C");

for my $vector (Vectors::there() ? Vectors::frames() : ()) {
    next if !$vector->{frame};
    in_c($vector->{name}, $_) for Vectors::encodable($vector->{frame}{payload});
}

done_testing;
