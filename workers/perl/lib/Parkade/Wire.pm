package Parkade::Wire;

use strict;
use warnings;

use Exporter qw(import);
use Parkade::MessagePack ();
use Parkade::Violation   ();

use constant {
    FRAME_MAX     => 1_048_576,
    INLINE_MAX    => 65_536,
    WINDOW        => 262_144,
    JOB_VALUE_MAX => 524_288,
    JOB_NAME_MAX  => 200,
    CREDIT_MAX    => 65_536,
    LOG_TEXT_MAX  => 65_536,
    BRANCH_FIRST  => 1 << 31,
    HEADER_SIZE   => 12,
    MORE          => 1,
    TEXT          => 2,
    # What a message of a WebSocket takes of its window besides its bytes.
    MESSAGE_OVERHEAD => 64,
    # No request waits for 10^15 seconds: the bound is there because it refuses infinity and NaN.
    SECONDS_MAX => 1e15,
};

my %KINDS;

BEGIN {
    %KINDS = (
        HELLO    => 0x01, READY   => 0x02, FAILED => 0x03, REQUEST => 0x10, RESPONSE => 0x11, DATA    => 0x12,
        WINDOWED => 0x13, ERROR   => 0x14, BEGAN  => 0x15, PARK    => 0x20, RESUME   => 0x21, PUBLISH => 0x22,
        CANCEL   => 0x23, UNPARK  => 0x24, CREDIT => 0x30, DRAIN   => 0x31, PING     => 0x32, PONG    => 0x33,
        GOODBYE  => 0x34, ENQUEUE => 0x38, RUN    => 0x39, RESULT  => 0x3a, PROGRESS => 0x3b, MESSAGE => 0x40,
        CLOSE    => 0x41, EARLY_HINTS => 0x16, TRAILERS => 0x17,
    );
}
use constant { map { ("F_$_" => $KINDS{$_}) } keys %KINDS };

our %NAMES = map { ($KINDS{$_} => $_ eq 'WINDOWED' ? 'WINDOW' : $_) } keys %KINDS;

our @EXPORT_OK = (
    qw(frame payload response read_frame %NAMES FRAME_MAX INLINE_MAX WINDOW JOB_VALUE_MAX CREDIT_MAX LOG_TEXT_MAX),
    qw(BRANCH_FIRST HEADER_SIZE MORE TEXT MESSAGE_OVERHEAD end_of),
    map { "F_$_" } keys %KINDS
);
our %EXPORT_TAGS = (all => \@EXPORT_OK);

sub frame {
    my ($kind, $stream, $payload, $flags) = @_;
    return pack('NCCx2N', length $payload, $kind, $flags || 0, $stream) . $payload;
}

sub payload { return Parkade::MessagePack::encode([@_]) }

# The payload of RESPONSE, which `payload` would make, in a fifth of the time: fields are mostly short. A reference is to
# bytes; without a body, that follows.
sub response {
    my ($status, $fields, $body) = @_;
    my $count   = @$fields;
    my $written = "\x93" . ($status < 0x100 ? pack 'CC', 0xcc, $status : pack 'Cn', 0xcd, $status);
    $written .= $count < 16 ? chr(0x90 | $count) : $count < 0x1_0000 ? pack 'Cn', 0xdc, $count : pack 'CN', 0xdd, $count;
    for my $field (@$fields) {
        if (ref $field) { $written .= (length $$field < 0x100 ? "\xc4" . chr length $$field : _bytes_head($$field)) . $$field }
        elsif (length $field < 32 && $field !~ /[^\x00-\x7f]/) { $written .= chr(0xa0 | length $field) . $field }
        else { $written .= Parkade::MessagePack::encode("$field") }
    }
    $written .= defined $body ? (length $body < 0x100 ? "\xc4" . chr length $body : _bytes_head($body)) . $body : "\xc0";
    utf8::downgrade($written);
    die "a response is too large: its head has at most a million bytes\n" if length $written > FRAME_MAX;
    return $written;
}

sub _bytes_head {
    my $size = length $_[0];
    return $size < 0x100 ? pack 'CC', 0xc4, $size : $size < 0x1_0000 ? pack 'Cn', 0xc5, $size : pack 'CN', 0xc6, $size;
}

# The last bytes of a text: a message names its reason last.
sub end_of {
    my ($text, $size) = @_;
    utf8::encode(my $bytes = $text);
    if (length $bytes > $size) {
        $bytes = substr $bytes, -$size;
        $bytes =~ s/\A[\x80-\xbf]+//;    # the rest of a character that was cut
    }
    utf8::decode($bytes);
    return $bytes;
}

# Reading. The payload that is being read, and the position in it: a frame is read at once, and nothing is in between.

my ($bytes, $at);

sub _refuse { Parkade::Violation->throw($_[0]) }

sub _token {
    my @token = Parkade::MessagePack::token(\$bytes, \$at);
    return @token;
}

sub _of_kind {
    my ($wanted, $what) = @_;
    my ($kind, $value) = _token();
    _refuse("$what is expected, not $kind") if $kind ne $wanted;
    return $value;
}

sub _text {
    return Parkade::MessagePack::text(\$bytes, \$at, _of_kind('text', 'text'));
}

sub _sized {
    my ($most) = @_;
    return sub {
        my $size = _of_kind('bytes', 'bytes');
        _refuse("at most $most bytes") if $size > $most;
        return Parkade::MessagePack::taken(\$bytes, \$at, $size);
    };
}

sub _count {
    my $value = _of_kind('integer', 'an integer');
    _refuse('an integer is not negative') if $value < 0;
    return $value;
}

sub _between {
    my ($least, $most) = @_;
    return sub {
        my $value = _of_kind('integer', 'an integer');
        _refuse("$least to $most") if $value < $least || $value > $most;
        return $value;
    };
}

sub _seconds {
    my ($kind, $value) = _token();
    _refuse('seconds are a number') if $kind ne 'integer' && $kind ne 'float';
    _refuse('seconds are finite and not negative') unless $value >= 0 && $value <= SECONDS_MAX;
    return $value + 0;    # an integer, if it is whole: C tells the same
}

sub _boolean { return _of_kind('boolean', 'a boolean') }

sub _one_of {
    my %names = map { ($_ => 1) } @_;
    return sub {
        my $text = _text();
        _refuse("$text is not one of " . join ', ', sort keys %names) if !$names{$text};
        return $text;
    };
}

sub _or_nil {
    my ($read) = @_;
    return sub {
        if (substr($bytes, $at, 1) eq "\xc0") {
            $at++;
            return undef;
        }
        return $read->();
    };
}

sub _array_of {
    my ($read) = @_;
    return sub {
        my $number = _of_kind('array', 'an array');
        _refuse('the array breaks off') if $number > length($bytes) - $at;
        my @each;
        push @each, $read->() for 1 .. $number;
        return \@each;
    };
}

# An array of these elements, after which there may be optional ones, and then unknown ones, which are skipped.
sub _record {
    my ($required, $optional) = @_;
    return sub {
        my $number = _of_kind('array', 'an array');
        return [_elements($number, $required, $optional)];
    };
}

sub _elements {
    my ($number, $required, $optional) = @_;
    _refuse('the array is too short') if $number < @$required;
    my @each = map { $_->() } @$required;
    for my $read (@{ $optional || [] }) {
        last if @each == $number;
        push @each, $read->();
    }
    Parkade::MessagePack::decode_at(\$bytes, \$at) for @each + 1 .. $number;
    return @each;
}

sub _pair {
    my $number = _of_kind('array', 'an array');
    _refuse('a column is a pair') if $number != 2;
    return [_text(), _text()];
}

sub _map {
    my $before = $at;
    my ($kind) = _token();
    _refuse('a map is expected') if $kind ne 'map';
    $at = $before;
    return Parkade::MessagePack::decode_at(\$bytes, \$at);
}

my $short = _sized(16);

sub _job_id {
    my $id = $short->();
    _refuse('an id is 16 bytes') if length $id != 16;
    return $id;
}

sub _job_name {
    my $name = _text();
    utf8::encode(my $written = $name);
    _refuse('a name has 1 to 200 bytes') if !length $written || length $written > JOB_NAME_MAX;
    _refuse('a name has no control character') if $name =~ /[\x00-\x1f\x7f-\x9f]/;
    return $name;
}

my $inline     = _sized(INLINE_MAX);
my $whole      = _sized(FRAME_MAX);
my $value      = _sized(JOB_VALUE_MAX);
my $status     = _between(400, 599);
my $text       = \&_text;
my $maybe_text = _or_nil($text);
my $maybe      = _or_nil($inline);
my $columns    = _array_of(\&_pair);
my $message    = _record([$text, $text, $whole, $maybe_text]);

# The elements of each outcome after its name, and those that may follow.
my %OUTCOMES = (
    elapsed     => [[]],
    message     => [[$text, $text, $whole, \&_boolean], [$maybe_text]],
    history     => [[$text, _array_of($message)]],
    published   => [[$text]],
    timeout     => [[$text]],
    refused     => [[$text, $status]],
    outcomes    => [[_or_nil(\&_count), $maybe]],
    said        => [[\&_boolean, $maybe]],
    closed      => [[_between(1000, 4999)]],
    unparked    => [[]],
    rows        => [[$columns, $text, \&_count, $maybe]],
    failed      => [[$text, $maybe_text, $text, _one_of(qw(none completed unknown cancelled)), $status, $text, $text]],
    stored      => [[_array_of(\&_job_id)]],
    result      => [[\&_job_id, $value]],
    pending     => [[\&_job_id]],
    'no result' => [[\&_job_id, $text, $text]],
);
my %WHOLE = (%OUTCOMES, rows => [[$columns, $text, \&_count, $whole]]);
delete @WHOLE{qw(outcomes said closed)};

sub _outcome_of {
    my ($table) = @_;
    return sub {
        my $number = _of_kind('array', 'an array');
        _refuse('an outcome has a name') if !$number;
        my $name  = _text();
        my $known = $table->{$name} or _refuse("there is no outcome $name");
        return [$name, _elements($number - 1, @$known)];
    };
}

my $outcomes = _array_of(_outcome_of(\%WHOLE));

# The outcomes of several waits, from the bytes of the outcome `outcomes`.
sub read_outcomes {
    my ($written) = @_;
    return _whole($outcomes, $written, 'outcomes');
}

my $stream_id = _between(1, 0xffff_ffff);
my $resume    = _record([_outcome_of(\%OUTCOMES), _array_of($stream_id)], [_or_nil($text), _or_nil(_array_of($inline))]);

sub _resume {
    my $read = $resume->();
    my ($outcome, $streams, $function, $states) = @$read;
    _refuse('function and states come together') if defined $function != defined $states;
    _refuse('one state for each stream')         if defined $states && @$states != @$streams;
    _refuse('rows that follow go to one stream') if follows($outcome) && @$streams != 1;
    return $read;
}

# Whether DATA brings the rows, the outcomes, or what was said: then MORE is set.
sub follows {
    my ($outcome) = @_;
    return $outcome->[0] eq 'rows' ? !defined $outcome->[4] : $outcome->[0] =~ /^(?:outcomes|said)$/ && !defined $outcome->[2];
}

my $port = _between(0, 65_535);
my $head = _record([$text, $text, $text, \&_headers, $text, $text, $text], [$text, $port, $text, $port]);

sub _headers {
    my $number = _of_kind('array', 'an array');
    _refuse('headers are pairs') if $number % 2;
    _refuse('the array breaks off') if $number > length($bytes) - $at;
    return [map { $_ % 2 ? $whole->() : _text() } 0 .. $number - 1];
}

# The head of a request: method, path, query, headers, client, scheme, version and perhaps its id, the port of the client, and
# the address and the port of the server.
sub read_head {
    my ($written) = @_;
    return _whole($head, $written, 'the head of a request');
}

my $request_start = [_or_nil(\&_count), _array_of($text), _or_nil(\&_seconds), $maybe];

# The head stays encoded, because PSGI makes an environment of it without a detour. Whatever follows it is of a later
# version.
sub _request {
    my $number = _of_kind('array', 'an array');
    _refuse('the array is too short') if $number < 5;
    my @read  = map { $_->() } @$request_start;
    my $begin = $at;
    if ($number == 5) {
        $at = length $bytes;
    }
    else {
        Parkade::MessagePack::decode_at(\$bytes, \$at);
        $read[5] = $at;
        Parkade::MessagePack::decode_at(\$bytes, \$at) for 6 .. $number;
    }
    return [@read[0 .. 3], substr $bytes, $begin, ($read[5] || length $bytes) - $begin];
}

# What almost all of them are: without a route, with a short body. The others are read as everything else is.
sub _usual_request {
    my ($payload) = @_;
    return if $payload !~ /\A\x95\xc0\x90(?:\xc0|\xcb(.{8}))\xc4(.)/s;
    my ($deadline, $size, $begin) = ($1, ord $2, $+[0]);
    return if $begin + $size > length $payload;
    if (defined $deadline) {
        $deadline = unpack 'd>', $deadline;
        return unless $deadline >= 0 && $deadline <= SECONDS_MAX;
        $deadline += 0;
    }
    return [undef, [], $deadline, substr($payload, $begin, $size), substr $payload, $begin + $size];
}

my $run = _record(
    [\&_job_id, \&_job_name, _between(1, 0xffff_ffff), _or_nil(\&_seconds), $value],
    [$maybe_text, $maybe_text]
);

sub _data {
    _refuse('DATA has at most ' . INLINE_MAX . ' bytes') if length $bytes > INLINE_MAX;
    $at = length $bytes;
    return $bytes;
}

sub _raw {
    $at = length $bytes;
    return $bytes;
}

# Where a kind of frame may stand (on stream 0, or on a request's), and what reads its payload.
my %FROM_CORE = (
    F_HELLO,    [0, _record([\&_count, \&_count, \&_count, \&_map])],
    F_REQUEST,  [1, \&_request],
    F_DATA,     [1, \&_data],
    F_WINDOWED, [1, _record([\&_count])],
    F_RUN,      [1, $run],
    F_RESUME,   [0, \&_resume],
    F_CANCEL,   [1, _record([$text])],
    F_DRAIN,    [0, _record([\&_seconds])],
    F_PING,     [0, _record([\&_count])],
    F_GOODBYE,  [0, _record([$text, $text])],
    F_MESSAGE,  [1, \&_raw],
    F_CLOSE,    [1, _record([\&_count, $text])],
);

sub read_frame {
    my ($kind, $stream, $payload) = @_;
    my $rule = $FROM_CORE{$kind};
    if (!$rule) {
        _refuse("$NAMES{$kind} from the wrong end") if exists $NAMES{$kind};
        return undef;
    }
    my ($on_request, $read) = @$rule;
    if ($kind == F_REQUEST && $stream != 0) {
        my $usual = _usual_request($payload);
        return $usual if $usual;
    }
    _refuse("$NAMES{$kind} on stream $stream") if $on_request != ($stream != 0);
    return _whole($read, $payload, $NAMES{$kind});
}

sub _whole {
    my ($read, $written, $name) = @_;
    ($bytes, $at) = ($written, 0);
    my $told = eval { $read->() };
    if (!defined $told) {
        chomp(my $reason = "$@");
        _refuse("$name: $reason");
    }
    _refuse("$name: bytes after the value") if $at != length $bytes;
    $bytes = '';
    return $told;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Wire - frames of the protocol between Parkade and its workers

=head1 DESCRIPTION

A frame is a header of 12 bytes and a payload (F<protocol/PROTOCOL.md>, section 1). This module writes frames, and reads
those of the core with all the checks of the protocol. Payloads are arrays in the protocol's order, with text as
characters and bytes as bytes.

=head1 FUNCTIONS

=head2 frame($kind, $stream, $payload, $flags)

One frame as bytes.

=head2 payload(@elements)

An array as MessagePack. See L<Parkade::MessagePack> for how bytes and booleans are written.

=head2 response($status, \@fields, $body)

The payload of C<RESPONSE>: names and values of fields in turn, references to bytes, and a body, or C<undef> if that follows. Dies for what no frame can hold.

=head2 read_frame($kind, $stream, $payload)

The payload of a frame from the core: an array, or the bytes of C<DATA> and C<MESSAGE>; C<undef> for an unknown kind.
Dies with a L<Parkade::Violation> for what the core must not send. The last element of a C<REQUEST> is its head, still
encoded.

=head2 read_head($bytes)

The head of a request: method, path, query, headers, client, scheme, version and perhaps the id, the port of the client, and
the address and the port of the server.

=head2 read_outcomes($bytes)

The outcomes of several waits.

=head2 follows($outcome)

Whether the rows of an outcome follow as C<DATA>.

=head2 end_of($text, $size)

The last characters of a text that have at most so many bytes.

=cut
