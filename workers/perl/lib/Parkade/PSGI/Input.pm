package Parkade::PSGI::Input;

use strict;
use warnings;

use File::Temp ();

# Bodies are in memory up to this size. Then: in a file that has no name.
use constant MEMORY_MAX => 1_048_576;

sub of_body {
    my ($body) = @_;
    open my $handle, '<', \$body or die "cannot read a body: $!\n";
    return ($handle, length $body);
}

# Reads the body of a request as it arrives. The core has it whole already, so this waits for nobody.
sub of_link {
    my ($link, $stream) = @_;
    my $session = $link->session;
    my ($start, $file, $size) = ('', undef, 0);
    while (1) {
        my ($piece, $granted) = $session->read_body($stream);
        $link->write($granted) if length $granted;
        if (!defined $piece) {
            return if $session->{cancelled}{$stream};
            $link->hear;
            next;
        }
        last if !length $piece;
        $size += length $piece;
        if (!$file && $size <= MEMORY_MAX) {
            $start .= $piece;
            next;
        }
        if (!$file) {
            $file = File::Temp::tempfile(UNLINK => 0) or die "cannot store a body: $!\n";
            binmode $file;
            $piece = $start . $piece;
            $start = '';
        }
        print {$file} $piece or die "cannot store a body: $!\n";
    }
    return of_body($start) if !$file;
    seek $file, 0, 0 or die "cannot read a body: $!\n";
    return ($file, $size);
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

=cut
