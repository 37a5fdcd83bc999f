# The codec against the vectors of the protocol, whole and a byte at a time.

use strict;
use warnings;
use lib 't/lib';

use Test::More;
use Parkade::MessagePack qw(bin);
use Parkade::Session     ();
use Parkade::Wire        qw(:all);
use Vectors              ();

# What is written in a shorter way of its own.
for my $size (0, 1, 31, 32, 255, 256, 65_535, 65_536) {
    my $text = 'x' x $size;
    my @fields = ($text, bin($text), "\x{e9}\x{263a}", bin("\xe9"), 'content-type', 'text');
    my @each = map { [map { @fields } 1 .. $_] } 0, 1, 3;
    for my $fields (@each) {
        my $plain = [map { ref $_ ? \(my $bytes = $$_) : $_ } @$fields];
        for my $status (200, 255, 256, 599) {
            ok(response($status, $plain, $text) eq payload($status, $fields, bin($text)), "a response, $size bytes");
            ok(response($status, $fields) eq payload($status, $fields, undef), "its head, $size bytes");
        }
    }
}

# The vectors, which are in the repository only

my %NUMBER = reverse %NAMES;

for my $vector (Vectors::there() ? Vectors::frames() : ()) {
    my $frame = $vector->{frame};
    if ($vector->{from} eq 'core') {
        for my $size (undef, 1) {
            my $how = defined $size ? 'a byte at a time' : 'whole';
            my $read = eval { received($vector->{hex}, $size) };
            if ($frame) {
                my $expected = Vectors::plain($frame->{payload}, 1);
                is_deeply($read, [$frame->{kind}, $frame->{flags}, $frame->{stream}, $expected], "$vector->{name}, $how")
                  or diag explain $@;
            }
            else {
                isa_ok($@, 'Parkade::Violation', "$vector->{name}, $how");
            }
        }
    }
    elsif ($frame && !$vector->{reading}) {
        my $payload = Vectors::encodable($frame->{payload});
        my $encoded = ref $payload eq 'Parkade::MessagePack::Bytes' ? $$payload : Parkade::MessagePack::encode($payload);
        my $written = frame($NUMBER{ $frame->{kind} }, $frame->{stream}, $encoded, $frame->{flags});
        ok($written eq Vectors::unhex($vector->{hex}), "$vector->{name}, written");
    }
}
done_testing;

# The only known frame in it, read as a session reads it.
sub received {
    my ($hex, $size) = @_;
    my $data = Vectors::unhex($hex);
    $size ||= length $data;
    $size = 977 if length $data > 20_000 && $size == 1;    # enough splits of the header, in a hundredth of the time
    my ($rest, @found) = ('');
    while (length $data) {
        $rest .= substr $data, 0, $size, '';
        while (length $rest >= HEADER_SIZE) {
            my ($length, $kind, $flags, $stream) = unpack 'NCCx2N', $rest;
            Parkade::Violation->throw('too long') if $length > FRAME_MAX;
            last if length $rest < HEADER_SIZE + $length;
            my $payload = substr $rest, HEADER_SIZE, $length;
            substr $rest, 0, HEADER_SIZE + $length, '';
            my $told = read_frame($kind, $stream, $payload);
            push @found, [$NAMES{$kind}, $flags & 3, $stream, shown($kind, $told)] if defined $told;
        }
    }
    die 'not one frame' if @found != 1;
    return $found[0];
}

sub shown {
    my ($kind, $told) = @_;
    return $told if !ref $told;
    my @shown = @$told;
    $shown[4] = Parkade::Wire::read_head($shown[4]) if $kind == F_REQUEST;
    if ($kind == F_HELLO) {
        my %known = map { ($_ => $shown[3]{$_}) } grep { exists $shown[3]{$_} } qw(core target threads);
        $shown[3] = \%known;
    }
    pop @shown while $kind == F_RESUME && @shown > 2 && !defined $shown[-1];
    splice @shown, 5 if $kind == F_RUN && !defined $shown[5];
    push @shown, undef if $kind == F_RUN && @shown == 6;
    pop @{ $shown[0] } while $kind == F_RESUME && $shown[0][0] eq 'message' && !defined $shown[0][-1];
    return booleans(\@shown);
}

sub booleans {
    my ($value) = @_;
    return [map { booleans($_) } @$value] if ref $value eq 'ARRAY';
    return ref $value eq 'Parkade::MessagePack::Boolean' ? $$value : $value;
}
