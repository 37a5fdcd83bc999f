package Parkade::MessagePack;

use strict;
use warnings;
no warnings 'recursion';    # it has a bound

use B            ();
use Exporter     qw(import);
use Parkade::Compiled ();
use Scalar::Util qw(blessed);

our @EXPORT_OK = qw(encode decode bin ordered float extension true false);

# A client decides what a job's arguments look like, so the recursion has a bound. Then: the value is refused.
use constant DEPTH_MAX => 500;

use constant NUMBER => B::SVf_IOK | B::SVf_NOK | B::SVp_IOK | B::SVp_NOK;

sub bin     { my ($bytes) = @_; return bless \$bytes,  'Parkade::MessagePack::Bytes' }
sub ordered { my (@pairs) = @_; return bless [@pairs], 'Parkade::MessagePack::Ordered' }
sub float   { my ($value) = @_; return bless \$value,  'Parkade::MessagePack::Float' }

sub extension { my ($type, $data) = @_; return bless [$type, $data], 'Parkade::MessagePack::Extension' }

my ($TRUE, $FALSE) = map { my $value = $_; bless \$value, 'Parkade::MessagePack::Boolean' } 1, 0;
sub true  { return $TRUE }
sub false { return $FALSE }

# C writes what is usual, and otherwise nothing: then Perl writes, or refuses, the whole value.
sub encode {
    my ($value) = @_;
    return (Parkade::Compiled::IS_USED ? Parkade::Compiled::encode($value) : undef) // _encode($value, 0);
}

sub decode {
    my ($bytes) = @_;
    my $at    = 0;
    my $value = _decode(\$bytes, \$at, 0);
    die "bytes after the value\n" if $at != length $bytes;
    return $value;
}

sub _encode {
    my ($value, $depth) = @_;
    return "\xc0" if !defined $value;
    my $class = ref $value;
    return _scalar($value) if $class eq '';
    die "a value is nested too deeply\n" if $depth > DEPTH_MAX;
    if ($class eq 'ARRAY') {
        return _head(scalar @$value, 0x90, 16, undef, 0xdc) . join '', map { _encode($_, $depth + 1) } @$value;
    }
    if ($class eq 'HASH') {
        return _head(scalar keys %$value, 0x80, 16, undef, 0xde) . join '',
          map { _text($_) . _encode($value->{$_}, $depth + 1) } sort keys %$value;
    }
    if ($class eq 'Parkade::MessagePack::Bytes') {
        my $bytes = $$value;
        utf8::downgrade($bytes, 1) or die "bytes with a character above 255\n";
        return _head(length $bytes, undef, 0, 0xc4, 0xc5) . $bytes;
    }
    if ($class eq 'Parkade::MessagePack::Ordered') {
        my $number = @$value / 2;
        my @each   = map { _encode($_, $depth + 1) } @$value;
        return join '', _head($number, 0x80, 16, undef, 0xde), @each;
    }
    return "\xcb" . pack 'd>', $$value if $class eq 'Parkade::MessagePack::Float';
    if ($class eq 'Parkade::MessagePack::Extension') {
        my ($type, $data) = @$value;
        return _head(length $data, undef, 0, 0xc7, 0xc8) . pack('c', $type) . $data;
    }
    return $$value ? "\xc3" : "\xc2" if $class eq 'SCALAR' || blessed $value && $value->isa('JSON::PP::Boolean');
    return $$value ? "\xc3" : "\xc2" if $class eq 'Parkade::MessagePack::Boolean';
    die "$class is not plain data, which is numbers, text, arrays, hashes, \\1 and \\0\n";
}

sub _scalar {
    my ($value) = @_;
    my $flags = B::svref_2object(\$value)->FLAGS;
    return _text($value) if $flags & B::SVf_POK || !($flags & NUMBER);
    # A float that code has compared has an integer, too, which is another number: that is private.
    my $is_integer = $flags & B::SVf_IOK || $flags & B::SVp_IOK && !($flags & (B::SVf_NOK | B::SVp_NOK));
    return _integer($value) if $is_integer && !($flags & B::SVf_NOK && $value != int $value);
    return "\xcb" . pack 'd>', $value;
}

sub _integer {
    my ($value) = @_;
    if ($value >= 0) {
        return chr $value if $value < 0x80;
        return pack 'CC',  0xcc, $value if $value < 0x100;
        return pack 'Cn',  0xcd, $value if $value < 0x1_0000;
        return pack 'CN',  0xce, $value if $value <= 0xffff_ffff;
        return pack 'CQ>', 0xcf, $value;
    }
    return pack 'c',   $value if $value >= -0x20;
    return pack 'Cc',  0xd0, $value if $value >= -0x80;
    return pack 'Cs>', 0xd1, $value if $value >= -0x8000;
    return pack 'Cl>', 0xd2, $value if $value >= -0x8000_0000;
    return pack 'Cq>', 0xd3, $value;
}

sub _text {
    my ($text) = @_;
    if (utf8::is_utf8($text)) {
        no warnings 'surrogate';
        $text =~ s/[\x{d800}-\x{dfff}]|[^\x{0}-\x{10ffff}]/\x{fffd}/g;    # the other end takes valid UTF-8 only
    }
    utf8::encode($text);
    return _head(length $text, 0xa0, 32, 0xd9, 0xda) . $text;
}

# The first bytes of a value with a length: the short form below $limit, one byte of length with tag $one (if there
# is such a form), then two with tag $two, and four with the next.
sub _head {
    my ($length, $short, $limit, $one, $two) = @_;
    return chr($short | $length) if defined $short && $length < $limit;
    return pack 'CC', $one, $length if defined $one && $length < 0x100;
    return pack 'Cn', $two, $length if $length < 0x1_0000;
    return pack 'CN', $two + 1, $length;
}

my %FIXED = (
    0xc0 => undef,
    0xc2 => 0,
    0xc3 => 1,
);
my %NUMBERS = (
    0xca => ['f>', 4],
    0xcb => ['d>', 8],
    0xcc => ['C',  1],
    0xcd => ['n',  2],
    0xce => ['N',  4],
    0xcf => ['Q>', 8],
    0xd0 => ['c',  1],
    0xd1 => ['s>', 2],
    0xd2 => ['l>', 4],
    0xd3 => ['q>', 8],
);
my %SIZED = (                                 # what it is, and how its length is written
    0xc4 => ['bytes', 'C', 1], 0xc5 => ['bytes', 'n', 2], 0xc6 => ['bytes', 'N', 4],
    0xd9 => ['text',  'C', 1], 0xda => ['text',  'n', 2], 0xdb => ['text',  'N', 4],
    0xdc => ['array', 'n', 2], 0xdd => ['array', 'N', 4],
    0xde => ['map',   'n', 2], 0xdf => ['map',   'N', 4],
    0xc7 => ['ext',   'C', 1], 0xc8 => ['ext',   'n', 2], 0xc9 => ['ext',   'N', 4],
);

# What stands at the position: its kind (`nil`, `boolean`, `integer`, `float`, `text`, `bytes`, `array`, `map`, `ext`),
# and its value or its length, after which the position is.
sub token {
    my ($bytes, $at) = @_;
    my $tag = ord substr $$bytes, $$at, 1;
    die "the value breaks off\n" if $$at >= length $$bytes;
    $$at++;
    return (integer => $tag)          if $tag < 0x80;
    return (map     => $tag & 0x0f)   if $tag < 0x90;
    return (array   => $tag & 0x0f)   if $tag < 0xa0;
    return (text    => $tag & 0x1f)   if $tag < 0xc0;
    return (integer => $tag - 0x100)  if $tag >= 0xe0;
    return ($tag == 0xc0 ? 'nil' : 'boolean', $FIXED{$tag}) if exists $FIXED{$tag};
    if (my $number = $NUMBERS{$tag}) {
        my ($format, $size) = @$number;
        return ($tag < 0xcc ? 'float' : 'integer', unpack $format, taken($bytes, $at, $size));
    }
    if (my $sized = $SIZED{$tag}) {
        my ($kind, $format, $size) = @$sized;
        return ($kind, unpack $format, taken($bytes, $at, $size));
    }
    return (ext => 1 << $tag - 0xd4) if $tag >= 0xd4 && $tag <= 0xd8;
    die "no MessagePack value begins with $tag\n";
}

# The next bytes, so many.
sub taken {
    my ($bytes, $at, $size) = @_;
    die "the value breaks off\n" if $size > length($$bytes) - $$at;
    my $piece = substr $$bytes, $$at, $size;
    $$at += $size;
    return $piece;
}

sub text {
    my ($bytes, $at, $size) = @_;
    my $text = taken($bytes, $at, $size);
    if ($text =~ /[^\x00-\x7f]/) {
        utf8::decode($text) or die "text that is not UTF-8\n";
        no warnings 'surrogate';
        die "text that is not UTF-8\n" if $text =~ /[\x{d800}-\x{dfff}]|[^\x{0}-\x{10ffff}]/;
    }
    return $text;
}

sub _decode {
    my ($bytes, $at, $depth) = @_;
    my ($kind, $value) = token($bytes, $at);
    return $value if $kind eq 'integer' || $kind eq 'float' || $kind eq 'nil';
    return text($bytes, $at, $value)  if $kind eq 'text';
    return taken($bytes, $at, $value) if $kind eq 'bytes';
    return $value ? $TRUE : $FALSE    if $kind eq 'boolean';
    die "a value is nested too deeply\n" if $depth > DEPTH_MAX;
    if ($kind eq 'array') {
        die "the value breaks off\n" if $value > length($$bytes) - $$at;
        my @each;
        push @each, _decode($bytes, $at, $depth + 1) for 1 .. $value;
        return \@each;
    }
    if ($kind eq 'map') {
        die "the value breaks off\n" if 2 * $value > length($$bytes) - $$at;
        my %pairs;
        for (1 .. $value) {
            my $key = _decode($bytes, $at, $depth + 1);
            die "a map has keys of text\n" if !defined $key || ref $key && ref $key ne 'Parkade::MessagePack::Boolean';
            $pairs{$key} = _decode($bytes, $at, $depth + 1);
        }
        return \%pairs;
    }
    my $type = unpack 'c', taken($bytes, $at, 1);
    return bless [$type, taken($bytes, $at, $value)], 'Parkade::MessagePack::Extension';
}

sub decode_at {
    my ($bytes, $at) = @_;
    return _decode($bytes, $at, 0);
}

package Parkade::MessagePack::Boolean;

use overload
  'bool' => sub { ${ $_[0] } },
  '0+'   => sub { ${ $_[0] } },
  '""'   => sub { ${ $_[0] } },
  'eq'   => sub { "$_[0]" eq "$_[1]" },
  fallback => 1;

sub TO_JSON { my ($self) = @_; return $$self ? \1 : \0 }

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::MessagePack - plain data as MessagePack, in its shortest form

=head1 SYNOPSIS

    use Parkade::MessagePack qw(encode decode bin);
    my $bytes = encode(['Anna', 7, { price => 2.5 }, bin("\xff"), \1]);
    my $data  = decode($bytes);

=head1 DESCRIPTION

As strict as the protocol is about which text is UTF-8 and where a value ends. Data::MessagePack, which
Debian packages, does not fit: it keeps no difference between text and bytes.

=head1 FUNCTIONS

=head2 encode($value)

The bytes of a value. A string is written as text, a number as an integer or a float, C<undef> as nil, C<\1> and C<\0>
as booleans; hashes in the order of their keys. Dies for anything else.

=head2 decode($bytes)

The value of which these are all the bytes. Text becomes characters, bytes stay bytes, booleans are objects that act as 1
and 0. Dies if the bytes are not exactly one value.

=head2 decode_at(\$bytes, \$position)

The value at that position, which is moved after it.

=head2 bin($bytes)

Marks a string that is written as bytes.

=head2 ordered($key, $value, ...)

A map whose keys are written in this order.

=head2 extension($type, $bytes)

The application's own type of that number; C<decode> gives such an object, too: an array of both.

=head2 float($number)

A number that is written as a float, even if it is whole.

=head2 true, false, TO_JSON

The booleans.

C<TO_JSON> is for JSON encoders with C<convert_blessed>: they write C<true> and C<false>.

=head2 token(\$bytes, \$position), taken(\$bytes, \$position, $size), text(\$bytes, \$position, $size)

What a reader that knows what it expects is made of: the kind and the value or length at a position, the next bytes, and
the next bytes as checked text.

=cut
