package Parkade::Message;

use strict;
use warnings;

use JSON::PP        ();
use Parkade::Checks ();

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

sub json {
    my ($self) = @_;
    return JSON::PP->new->utf8->allow_nonref->decode($self->{body}) if !$self->{is_said};
    my ($data, $wrong) = Parkade::Checks::from_json($self->{body});
    die Parkade::Close->new(1007, "the message is $wrong") if $wrong;
    return $data;
}

package Parkade::Close;

use Carp ();

use constant NORMAL     => 1000;   # what a close without a code says
use constant REASON_MAX => 123;    # bytes (RFC 6455, section 5.5). Then: it dies

use overload '""' => sub { "close with $_[0]{code}: $_[0]{reason}" }, fallback => 1;

sub new {
    my ($class, $code, $reason) = @_;
    $code //= NORMAL;
    Carp::croak("a WebSocket is closed with 1000 to 1003, 1007 to 1014, or 3000 to 4999, not with $code")
      if $code !~ /\A(?:100[0-37-9]|101[0-4]|[34][0-9]{3})\z/;
    utf8::encode(my $bytes = $reason // '');
    Carp::croak('the reason of a close can have at most ' . REASON_MAX . ' bytes') if length $bytes > REASON_MAX;
    return bless { code => $code + 0, reason => $reason // '' }, $class;
}

1;

__END__

=head1 NAME

Parkade::Message - a message of a channel, or of the client of a WebSocket, as a function gets it

=head1 METHODS

=head2 text, json, body

The message as characters, as data, as bytes. As a string it is its text. What a client of a WebSocket says, and is not JSON,
makes C<json> close the WebSocket with 1007.

=head2 cursor, content_type, event, gap

Its position in the channel, its type, its event or C<undef>, and whether messages before it are no longer held. What a client
says has only a type: C<text/plain; charset=utf-8>, or C<application/octet-stream> for a binary message.

=head2 new(%members)

=cut
