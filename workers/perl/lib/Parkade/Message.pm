package Parkade::Message;

use strict;
use warnings;

use JSON::PP ();

use overload '""' => sub { $_[0]->text }, fallback => 1;

sub new {
    my ($class, %members) = @_;
    return bless {%members}, $class;
}

sub body         { return $_[0]{body} }
sub cursor       { return $_[0]{cursor} }
sub content_type { return $_[0]{content_type} }
sub event        { return $_[0]{event} }
sub gap          { return $_[0]{gap} }

sub text {
    my ($self) = @_;
    my $text = $self->{body};
    utf8::decode($text);
    return $text;
}

sub json { my ($self) = @_; return JSON::PP->new->utf8->allow_nonref->decode($self->{body}) }

1;

__END__

=head1 NAME

Parkade::Message - a message of a channel, as a function gets it after a wait

=head1 METHODS

=head2 text, json, body

The message as characters, as data, as bytes. As a string it is its text.

=head2 cursor, content_type, event, gap

Its position in the channel, its type, its event or C<undef>, and whether messages before it are no longer held.

=head2 new(%members)

=cut
