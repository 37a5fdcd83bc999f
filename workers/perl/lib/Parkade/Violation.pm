package Parkade::Violation;

use strict;
use warnings;

use overload '""' => sub { $_[0]{text} }, fallback => 1;

sub throw {
    my ($class, $text) = @_;
    die bless { text => $text }, $class;
}

1;

__END__

=head1 NAME

Parkade::Violation - what one end of a link must not send

=head1 METHODS

=head2 throw($text)

Dies with an object that is the text when it is used as a string.

=cut
