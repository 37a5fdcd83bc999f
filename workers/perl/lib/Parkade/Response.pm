package Parkade::Response;

use strict;
use warnings;

use overload             ();

use Parkade::Checks      ();
use Parkade::Headers     ();
use Parkade::MessagePack qw(bin decode encode extension);
use Scalar::Util         qw(blessed);

use constant EXTENSION => 1;    # the type of a response in the result of a job

my $TEXT = bin('text/plain; charset=utf-8');

sub new {
    my ($class, $status, $headers, $body) = @_;
    return bless { status => $status, headers => [@{ $headers || [] }], body => $body // '' }, $class;
}

sub html {
    my ($class, $text) = @_;
    return $class->new(200, ['content-type', 'text/html; charset=utf-8'], bytes_of($text));
}

sub status {
    my ($self, $status) = @_;
    $self->{status} = $status + 0;
    return $self;
}

sub header {
    my ($self, @pairs) = @_;
    push @{ $self->{headers} }, @pairs;
    return $self;
}

# What a handler has returned, as a response. Text is text, data is JSON, an array of three is a response of PSGI.
sub of {
    my ($value) = @_;
    return Parkade::Response->new(204) if !defined $value;
    my $kind = ref $value;
    return $value if $kind eq 'Parkade::Response';
    return Parkade::Response->new(200, ['content-type', $value->content_type], $value->body) if $kind eq 'Parkade::Message';
    return Parkade::Response->new(200, ['content-type', 'text/plain; charset=utf-8'], bytes_of($value)) if $kind eq '';
    if ($kind eq 'ARRAY' && @$value == 3 && !ref $value->[0] && ref $value->[1] eq 'ARRAY' && ref $value->[2] eq 'ARRAY') {
        return Parkade::Response->new($value->[0], $value->[1], join '', @{ $value->[2] });
    }
    if ($kind eq 'CODE') {
        return Parkade::Response->new(200, ['content-type', 'text/plain; charset=utf-8'], $value);
    }
    die "a handler returned an object of $kind, which is not an answer\n" if blessed $value && !$value->can('TO_JSON');
    return Parkade::Response->new(200, ['content-type', 'application/json'], Parkade::Checks::json($value));
}

# The result of a job, as it is stored and given: a response is one of the protocol's own types.
sub stored {
    my ($value) = @_;
    if (!blessed $value || !$value->isa('Parkade::Response')) {
        return eval { encode($value) } // die "the result of a job must be plain data: $@";
    }
    return encode(extension(EXTENSION, encode(encoded($value))));
}

sub loaded {
    my ($bytes) = @_;
    my $value = decode($bytes);
    return $value if ref $value ne 'Parkade::MessagePack::Extension' || $value->[0] != EXTENSION;
    return Parkade::Response->new(@{ decode($value->[1]) });
}

# The code that returns the pieces of a body; nothing for a body that is there.
sub pieces { my ($self) = @_; return ref $self->{body} eq 'CODE' ? $self->{body} : undef }

# Status, headers and body as the protocol has them.
sub encoded {
    my ($value) = @_;
    return [200, ['content-type', $TEXT], bin(bytes_of($value))] if defined $value && !ref $value;    # what most return
    my $response = of($value);
    die "only handlers and functions after a wait may return a body in pieces\n" if $response->pieces;
    return [@{ head($response) }, bin(bytes_of($response->{body}))];
}

# Status and headers.
sub head {
    my ($response) = @_;
    my ($status, $headers, $body) = @$response{qw(status headers body)};
    die 'a status must be 200 to 599, not ' . ($status // 'undef') . "\n" if ($status // '') !~ /\A[2-5][0-9]{2}\z/;
    if (ref $body && ref $body ne 'CODE' && !overload::Method($body, '""')) {
        die 'a body must be text, bytes or code, not a reference to ' . ref($body) . ": return data without a response, or encode it\n";
    }
    return [$status + 0, Parkade::Headers::told($headers, \&bytes_of)];
}

# A piece of a body as bytes.
sub piece {
    my ($text) = @_;
    die "a piece of a body must be text or bytes\n" if ref $text;
    return bytes_of($text);
}

# Text as bytes, which what Perl keeps as bytes is already.
sub bytes_of {
    my ($text) = @_;
    my $bytes = "$text";
    utf8::encode($bytes) if utf8::is_utf8($bytes);
    return $bytes;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Response - an answer of a handler

=head1 SYNOPSIS

    return html("<p>Hola</p>")->status(201)->header('x-lot' => 7);

=head1 METHODS

=head2 new($status, \@headers, $body), html($text)

=head2 status($number), header($name, $value, ...)

Change it, and return it.

The body may be a code reference, which returns the pieces of the body one by one, and then C<undef>.

=head2 of($value), encoded($value), head($response), pieces, piece($text), bytes_of($text)

What a handler has returned as a response, and as the protocol has it. C<undef> is 204; text is C<text/plain>; a hash, an
array or a number in one is JSON; an array of status, headers and an array of texts is a response of PSGI; a code reference is
a body in pieces.

=head2 stored($value), loaded($bytes)

The result of a job as bytes, and back. It is plain data or a response.

=cut
