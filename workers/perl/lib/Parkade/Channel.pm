package Parkade::Channel;

use strict;
use warnings;

use Carp            ();
use Parkade::Checks ();
use Parkade::Link   ();
use Parkade::Wait   ();

our @CARP_NOT = qw(Parkade);

use constant COUNT_MAX => 2**53;    # messages of a history. Then: it dies

sub new {
    my ($class, $name) = @_;
    Parkade::Checks::channel($name);
    return bless { name => "$name" }, $class;
}

sub next {
    my ($self, %options) = @_;
    return Parkade::Wait->new(next => $self->{name}, _checked(\%options, qw(timeout since)));
}

sub stream {
    my ($self, %options) = @_;
    return Parkade::Wait->new(stream => $self->{name}, _checked(\%options, qw(since)));
}

sub socket {
    my ($self, @rest) = @_;
    my $options = ref $rest[0] eq 'HASH' ? shift @rest : {};
    my ($code, @state) = @rest;
    Carp::croak('socket needs the sub that is called for each message of the client') if !defined $code;
    Parkade::Checks::subprotocols($options->{subprotocols}) if defined $options->{subprotocols};
    return Parkade::Wait->new(socket => $self->{name}, _checked($options, qw(since subprotocols)))->then($code, @state);
}

sub history {
    my ($self, %options) = @_;
    return Parkade::Wait->new(history => $self->{name}, _checked(\%options, qw(count)));
}

sub publish {
    my ($self, $body, %options) = @_;
    my $link = Parkade::Link->current or Carp::croak('only a worker of Parkade can publish messages');
    $link->publish($link->running, $self->{name}, $body, %options);
    return;
}

sub _checked {
    my ($options, @known) = @_;
    my %known = map { ($_ => 1) } @known;
    my ($unknown) = grep { !$known{$_} } keys %$options;
    Carp::croak("unknown option $unknown; the options here are " . join ', ', @known) if defined $unknown;
    my %told = map { ($_ => $options->{$_}) } grep { defined $options->{$_} } keys %$options;
    $told{timeout} = Parkade::Checks::seconds('timeout', $told{timeout}) if exists $told{timeout};
    $told{count} = Parkade::Checks::integer('count', 0, COUNT_MAX, $told{count}) if exists $told{count};
    $told{since} = "$told{since}" if exists $told{since};
    return \%told;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Channel - a named stream of messages that requests wait for

=head1 SYNOPSIS

    channel("auction/$lot")->publish({ bid => 7 });
    return channel("auction/$lot")->next(timeout => 30);
    return channel("auction/$lot")->stream;

=head1 METHODS

=head2 new($name)

1 to 200 bytes, no control characters.

=head2 publish($body, event => $name, content_type => $type)

Publishes a message, before the client of the running request gets its response. Text is published as it is, an array or a
hash as JSON. At most 524,288 bytes. The type has at most 1,024 bytes.

=head2 next(timeout => $seconds, since => $cursor)

A wait: for the next message. The client gets it with its cursor as C<ETag>; 204 after the timeout. A client that sends the
cursor back, in C<If-None-Match>, misses nothing.

=head2 stream(since => $cursor)

A wait: every message from now on, as server-sent events.

=head2 socket($sub, @state), socket(\%options, $sub, @state)

A wait, for a handler of C<websocket> (see L<Parkade>): the core holds the WebSocket, and sends its client every message of the
channel. For each message of the client, the named sub is called, in whichever worker is free, with a L<Parkade::Message> and
C<@state>, plain data of at most 64 KiB. The client's next message is read after that call has ended.

What the sub returns goes to this client alone, like the answer of a handler: text as text, data as JSON, a message as it
came, C<undef> is nothing. It may be a wait, or C<close_socket(...)>. If it dies, the WebSocket is closed with 1011.

Options: C<since>, as for C<stream>; C<subprotocols>, a reference to an array of names: the first that the client offers is
agreed.

=head2 history(count => $number)

A wait that is over at once: what the channel holds.

=cut
