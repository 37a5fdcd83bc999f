package Parkade::Headers;

use strict;
use warnings;

use overload             ();
use Parkade::MessagePack ();

my $TOKEN = qr/\A[!#\$%&'*+.^_`|~0-9A-Za-z-]+\z/;

# Names, and values as bytes. What they are is not looked at: the core does that.
sub told {
    my ($headers, $bytes_of) = @_;
    check_pairs($headers);
    my @told;
    for (my $at = 0; $at < @$headers; $at += 2) {
        my ($name, $value) = @$headers[$at, $at + 1];
        die "a header has no name\n" if !defined $name;
        _check_object($name, $value) if ref $value;
        my $text = defined $value ? "$value" : '';
        $text = $bytes_of->($text) if utf8::is_utf8($text);
        push @told, "$name", bless \$text, 'Parkade::MessagePack::Bytes';
    }
    return \@told;
}

# Objects that are text, such as addresses, pass.
sub _check_object {
    my ($name, $value) = @_;
    die "the value of the header $name must be text, not a reference\n" if overload::StrVal($value) eq "$value";
    return;
}

sub check_pairs {
    my ($headers) = @_;
    die "the headers of a response must be an array of names and values\n" if ref $headers ne 'ARRAY' || @$headers % 2;
    return;
}

# The same for what the core adds to an answer after a wait, when whoever wrote it is no longer there.
sub added {
    my ($headers, $bytes_of) = @_;
    my $told = told($headers, $bytes_of);
    for (my $at = 0; $at < @$told; $at += 2) {
        my ($name, $value) = @$told[$at, $at + 1];
        die "$name is no name of a header: it has letters, digits and !#\$%&'*+.^_`|~-\n" if $name !~ $TOKEN;
        die "the value of the header $name must not contain line ends or NUL\n" if $$value =~ /[\r\n\0]/;
    }
    return $told;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Headers - the headers of a response, as the protocol has them

=head1 FUNCTIONS

=head2 told(\@headers, $bytes_of)

Names and values, which are marked as bytes: C<undef> is empty, numbers and objects that are text are text. C<$bytes_of> is
called for text that Perl does not keep as bytes. Dies for an odd number, a missing name and references.

=head2 added(\@headers, $bytes_of)

The same for an answer that comes after a wait; dies for names and values that HTTP does not have, too.

=head2 check_pairs(\@headers)

Dies for what are no pairs.

=cut
