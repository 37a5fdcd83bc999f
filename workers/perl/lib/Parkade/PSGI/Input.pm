package Parkade::PSGI::Input;

use strict;
use warnings;

# Bodies are in memory up to this size. Then: in a file that has no name.
use constant MEMORY_MAX => 1_048_576;

sub of_body {
    my ($body) = @_;
    open my $handle, '<', \$body or die "cannot read a body: $!\n";
    return ($handle, length $body);
}

# A body that is longer than its frame. The core has it whole already, so this waits for nobody.
sub of_link {
    my ($link, $stream) = @_;
    my $body = Parkade::PSGI::Input->new($link, $stream);
    until ($body->is_whole) {
        return if $link->session->{cancelled}{$stream};
        $link->hear;
    }
    return $body->handle;
}

sub new {
    my ($class, $link, $stream) = @_;
    return bless { link => $link, stream => $stream, start => '', file => undef, size => 0 }, $class;
}

sub is_whole {
    my ($self) = @_;
    my ($link, $stream) = @$self{qw(link stream)};
    while (1) {
        my ($piece, $granted) = $link->session->read_body($stream);
        $self->_add($piece)   if length $piece;
        $link->write($granted) if length $granted;
        return defined $piece if !length $piece;
    }
}

sub _add {
    my ($self, $piece) = @_;
    $self->{size} += length $piece;
    if (!$self->{file} && $self->{size} <= MEMORY_MAX) {
        $self->{start} .= $piece;
        return;
    }
    if (!$self->{file}) {
        require File::Temp;    # seldom needed, and large
        $self->{file} = File::Temp::tempfile(UNLINK => 0);
        binmode $self->{file};
        $piece = delete($self->{start}) . $piece;
    }
    local ($\, $,);    # the application's
    print { $self->{file} } $piece or die "cannot store a body: $!\n";
    return;
}

sub handle {
    my ($self) = @_;
    my $file = $self->{file} or return of_body($self->{start});
    seek $file, 0, 0 or die "cannot store a body: $!\n";
    return ($file, $self->{size});
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::PSGI::Input - psgi.input: a request's body, buffered and seekable

=head1 FUNCTIONS

=head2 of_body($bytes)

A handle, and the length.

=head2 of_link($link, $stream)

The same for a body that follows its head: above 1 MiB it is in a temporary file. Nothing if the client left in the middle.

=head1 METHODS

=head2 new($link, $stream), is_whole, handle

The same for a body that arrives while others are answered: takes what has arrived of it, and returns whether that is all;
then its handle, and the length.

=cut
