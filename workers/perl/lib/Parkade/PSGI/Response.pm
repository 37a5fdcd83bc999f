package Parkade::PSGI::Response;

use strict;
use warnings;

use Parkade::Call        ();
use Parkade::Headers     ();
use Parkade::Parked      ();
use Scalar::Util         qw(blessed openhandle reftype);

use constant {
    PIECE => 65_536,     # bytes that are read of a file at a time
    WHOLE => 65_536,     # bytes of a body that goes in one piece with its head
};

# Answers with [status, headers, body].
sub send_to {
    my ($exchange, $response) = @_;
    my ($status, $headers, $body) = @$response;
    Parkade::Headers::check_pairs($headers);
    if (my ($wait, $added) = Parkade::Parked::wait_of($headers)) {
        require Parkade::Native;
        return Parkade::Native::answer($exchange, $wait, Parkade::Headers::added($added, \&bytes_of));
    }
    my $told = _headers($status, $headers);
    if (ref $body eq 'ARRAY') {
        return $exchange->respond($status, $told, bytes_of(join '', grep { defined } @$body));
    }
    _check_body($body);
    return _send_handle($exchange, $status, $headers, $told, $body);
}

# The head of an answer whose body is written later.
sub begin {
    my ($exchange, $response) = @_;
    my ($status, $headers) = @$response;
    $exchange->begin($status, _headers($status, $headers));
    return;
}

sub _headers {
    my ($status, $headers) = @_;
    die "the first element of a response must be its status, 200 to 599\n"
      if !defined $status || ref $status || $status !~ /\A[2-5][0-9]{2}\z/;
    $_[0] += 0;
    my $told = Parkade::Headers::told($headers, \&bytes_of);
    return $status == 304 ? _without_content($told) : $told;
}

sub _without_content {
    my ($told) = @_;
    return [map { @$told[$_, $_ + 1] } grep { !($_ % 2) && $told->[$_] !~ /\Acontent-(?:length|type)\z/i } 0 .. $#$told];
}

sub bytes_of {
    my ($text) = @_;
    utf8::downgrade($text, 1) or die "wide characters in a response: encode it, for instance with Encode::encode_utf8\n";
    return $text;
}

sub _check_body {
    my ($body) = @_;
    return if blessed $body && $body->can('getline');
    return if openhandle $body;
    my $kind = !defined $body ? 'undef' : ref $body || 'text';
    die "the body of a response must be an array, a file handle, or an object with getline and close, not $kind\n";
}

# A body of a known, short length, and a short file, go in one piece: three frames become one. Others are sent as they
# come.
sub _send_handle {
    my ($exchange, $status, $headers, $told, $body) = @_;
    my $next = _reader($body);
    my $end  = sub { $body->close if defined $body && (!blessed $body || $body->can('close')); undef $body };
    my $start = '';
    if (_is_short($headers, $body)) {
        while (length $start <= WHOLE) {
            my $chunk = $next->();
            if (!defined $chunk) {
                Parkade::Call::value($end);
                return $exchange->respond($status, $told, $start);
            }
            $start .= $chunk;
        }
    }
    $exchange->begin($status, $told);
    $exchange->write($start) if length $start;
    $exchange->pull($next, $end);
    return;
}

sub _is_short {
    my ($headers, $body) = @_;
    for (my $at = 0; $at < @$headers; $at += 2) {
        return ($headers->[$at + 1] // '') =~ /\A[0-9]{1,5}\z/ && $headers->[$at + 1] <= WHOLE
          if lc $headers->[$at] eq 'content-length';
    }
    my $number = eval { fileno $body };
    return defined $number && $number >= 0 && -f $body && -s _ <= WHOLE;
}

sub _reader {
    my ($body) = @_;
    my $read = sub { local $/ = \PIECE; return blessed $body || ref $body eq 'GLOB' ? $body->getline : <$body> };
    return sub {
        while (1) {
            my $line = Parkade::Call::value($read);
            return undef if !defined $line;
            return bytes_of($line) if length $line;    # an empty one is not the end
        }
    };
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::PSGI::Response - sends a PSGI response

=head1 FUNCTIONS

=head2 send_to($exchange, [$status, \@headers, $body])

Sends a response whose body is an array, a file handle or an object with C<getline>. Handles are read as the client takes
what was read: no worker waits for a slow client. Dies for what is no response.

=head2 begin($exchange, [$status, \@headers])

Sends the head of a response whose body is written later.

=head2 bytes_of($text)

The bytes of a string; dies if it has wide characters.

=cut
