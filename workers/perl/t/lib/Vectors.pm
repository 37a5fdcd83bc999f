package Vectors;

# Reads the vectors of the protocol (protocol/vectors/README.md). JSON::PP keeps neither the order of keys nor the
# difference between 2 and 2.0, so they are read here.

use strict;
use warnings;

use File::Basename       qw(dirname basename);
use Parkade::MessagePack qw(bin ordered float true false);

my $folder = dirname(__FILE__) . '/../../../../protocol/vectors';

sub there { return -d $folder }

sub frames {
    return map {
        my $kind = basename($_, '.json');
        map { { %$_, name => "$kind: $_->{name}" } } @{ plain(parsed($_)) };
    } sort glob "$folder/frames/*.json";
}

sub sessions {
    return map { plain(parsed($_)) } sort glob "$folder/sessions/*.json";
}

sub unhex {
    my ($text) = @_;
    return join '', map { my ($byte, $count) = split /\*/; (pack 'H*', $byte) x ($count || 1) } split ' ', $text;
}

# A value as vectors write it, ready to be encoded: maps in their order, `{"bin": …}` as bytes.
sub encodable {
    my ($value) = @_;
    return [map { encodable($_) } @$value] if ref $value eq 'ARRAY';
    return $value if ref $value ne 'Parkade::MessagePack::Ordered';
    return bin(unhex($value->[1])) if @$value == 2 && $value->[0] eq 'bin';
    return ordered(map { encodable($_) } @$value);
}

# The same as plain data, to compare with what was read.
sub plain {
    my ($value, $unhex) = @_;
    return [map { plain($_, $unhex) } @$value] if ref $value eq 'ARRAY';
    return $$value if ref $value eq 'Parkade::MessagePack::Float' || ref $value eq 'Parkade::MessagePack::Boolean';
    return $value if ref $value ne 'Parkade::MessagePack::Ordered';
    return unhex($value->[1]) if $unhex && @$value == 2 && $value->[0] eq 'bin';
    my %pairs = @$value;
    return { map { ($_ => $_ eq 'payload' ? $pairs{$_} : plain($pairs{$_}, $unhex)) } keys %pairs };
}

sub parsed {
    my ($file) = @_;
    open my $handle, '<:encoding(UTF-8)', $file or die "$file: $!";
    local $_ = do { local $/; <$handle> };
    return _value();
}

my %ESCAPES = (n => "\n", t => "\t", r => "\r", b => "\b", f => "\f");

sub _value {
    return _array() if /\G\s*\[/gc;
    return _object() if /\G\s*\{/gc;
    return _text() if /\G\s*"/gc;
    return true  if /\G\s*true/gc;
    return false if /\G\s*false/gc;
    return undef if /\G\s*null/gc;
    return float($1 + 0) if /\G\s*(-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+))/gc;
    return $1 + 0 if /\G\s*(-?\d+)/gc;
    die 'no JSON at ' . pos;
}

sub _array {
    my @each;
    until (/\G\s*,?\s*\]/gc) {
        /\G\s*,/gc;
        push @each, _value();
    }
    return \@each;
}

sub _object {
    my @pairs;
    until (/\G\s*,?\s*\}/gc) {
        /\G\s*,?\s*"/gc or die 'no key at ' . pos;
        push @pairs, _text();
        /\G\s*:/gc or die 'no colon at ' . pos;
        push @pairs, _value();
    }
    return ordered(@pairs);
}

sub _text {
    /\G((?:[^"\\]|\\.)*)"/gc or die 'no end of a text at ' . pos;
    my $text = $1;
    $text =~ s{\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)}{chr(0x10000 + (hex($1) - 0xd800 << 10) + hex($2) - 0xdc00)}ge;
    $text =~ s{\\(?:u([0-9a-fA-F]{4})|(.))}{defined $1 ? chr hex $1 : $ESCAPES{$2} // $2}ge;
    return $text;
}

1;
