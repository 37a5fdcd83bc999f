package Parkade::PSGI::Writer;

use strict;
use warnings;

use Parkade::PSGI::Response ();

sub new {
    my ($class, $exchange) = @_;
    return bless { exchange => $exchange }, $class;
}

sub write {
    my ($self, $chunk) = @_;
    return if !defined $chunk || !length $chunk;
    $self->{exchange}->write(Parkade::PSGI::Response::bytes_of($chunk));
    return length $chunk;
}

sub close {
    my ($self) = @_;
    $self->{exchange}->finish;
    return;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::PSGI::Writer - the writer of a streamed response

=head1 METHODS

=head2 new($exchange)

=head2 write($bytes)

Sends a piece of the body. Above 4 MiB that the client has not read, it waits for the client. After the client has left it
does nothing.

=head2 close

Ends the body. So does forgetting the writer.

=cut
