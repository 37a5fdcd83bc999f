package Parkade::Checks;

use strict;
use warnings;

use Carp                 ();
use Parkade::MessagePack qw(bin encode);
use Parkade::Wire        ();
use Scalar::Util         qw(looks_like_number);

# Whoever wrote the name is told the line where it stands.
our @CARP_NOT = map { "Parkade$_" } '', map { "::$_" } qw(App Channel Job Link PSGI Query Wait);

use constant {
    DEPTH_MAX        => 200,        # levels of a client's JSON. Then: it dies
    NAME_MAX         => 200,        # bytes of a channel's name, an event's, a job's, a sub-protocol's. Then: it dies
    MESSAGE_MAX      => 524_288,    # bytes of a message. Then: it dies
    CONTENT_TYPE_MAX => 1_024,      # bytes of that of a message. Then: it dies
    SUBPROTOCOLS_MAX => 16,         # of a WebSocket. Then: it dies
    PRIORITY_MAX     => 1_000,      # of a job, and as much below 0. Then: it dies
};

my $TOKEN = qr/\A[!#\$%&'*+.^_`|~0-9A-Za-z-]+\z/;

# Many workers need none: it is a tenth of what they have in memory.
sub _json {
    require JSON::PP;
    return JSON::PP->new->utf8;
}

my $encoder;

sub json {
    my ($value) = @_;
    $encoder ||= _json()->canonical->allow_nonref->allow_blessed->convert_blessed;
    my $json = eval { $encoder->encode($value) } // die _why_not_json("$@");
    die "JSON has no infinity and no NaN\n" if $json =~ /Inf|NaN/ && $json =~ s/"(?:[^"\\]++|\\.)*+"//gr =~ /Inf|NaN/;
    return $json;
}

# In plain words, if JSON::PP does not take the value. What else objects die of stays as it is.
sub _why_not_json {
    my ($error) = @_;
    return "JSON is numbers, text, arrays, hashes, \\1 and \\0, not a reference of the kind $1\n"
      if $error =~ /\A(?:encountered|cannot encode reference to scalar ')(?: object ')?\s*(\w+)/;
    return "data is nested too deeply for JSON\n" if $error =~ /\A[^\n]*exceeds maximum nesting level/;
    return $error;
}

# The same, told to whoever wrote it.
sub json_of {
    my ($what, $value) = @_;
    return _told($what, sub { json($value) });
}

# The MessagePack of plain data, told to whoever wrote it.
sub plain {
    my ($what, $value) = @_;
    return _told($what, sub { encode($value) });
}

sub _told {
    my ($what, $code) = @_;
    return eval { $code->() } // Carp::croak("$what: " . $@ =~ s/\n\z//r);
}

# What a client sent, as data, and why it is none. To say where JSON is wrong, JSON::PP would list every character that
# follows, which takes forty times their memory.
sub from_json {
    my ($bytes) = @_;
    my $decoder = _json()->allow_nonref->max_depth(DEPTH_MAX);
    my $is_deep;
    no warnings 'redefine';
    local *JSON::PP::decode_error = sub { $is_deep = $_[0] =~ /nesting/; die "not JSON\n" };
    my $data = eval { $decoder->decode($bytes) };
    return ($data, undef) if !$@;
    return (undef, $is_deep ? 'JSON nested more than ' . DEPTH_MAX . ' levels deep' : 'not JSON');
}

sub _size { my ($text) = @_; utf8::encode(my $bytes = $text // ''); return length $bytes }

sub _sized {
    my ($what, $text) = @_;
    my $size = _size($text);
    Carp::croak("$what must have 1 to " . NAME_MAX . ' bytes') if !$size || $size > NAME_MAX;
    return;
}

sub _name {
    my ($what, $name) = @_;
    Carp::croak("$what needs a name") if !defined $name;
    _sized("the name of $what", $name);
    Carp::croak("the name of $what must not contain control characters") if $name =~ /[\x00-\x1f\x7f-\x9f]/;
    return;
}

sub channel { my ($name) = @_; return _name('a channel', $name) }
sub job     { my ($name) = @_; return _name('a job',     $name) }
sub queue   { my ($name) = @_; return _name('a queue',   $name) }
sub key     { my ($text) = @_; return _sized('a key',    $text) }

# Of a job that is enqueued: other servers may declare queues of any name.
sub queue_text { my ($text) = @_; return _sized('the name of a queue', $text) }

# Seconds as a number.
sub seconds {
    my ($what, $seconds) = @_;
    my $number = _number($seconds) // Carp::croak("$what is a number of seconds, not " . ($seconds // 'undef'));
    return $number if $number >= 0 && $number <= Parkade::Wire::SECONDS_MAX;    # neither infinity nor NaN is in there
    Carp::croak("$what must be a finite number of seconds, 0 or more, not $seconds");
}

# A whole number, also one that Perl keeps in another way.
sub integer {
    my ($what, $least, $most, $value) = @_;
    my $number = _number($value);
    Carp::croak("$what is an integer, not " . ($value // 'undef'))
      if !defined $number || $number - $number != 0 || $number != int $number;
    Carp::croak("$what is between $least and $most, not $value") if $number < $least || $number > $most;
    return 0 + sprintf '%d', $number;
}

sub priority { my ($value) = @_; return integer('a priority', -PRIORITY_MAX, PRIORITY_MAX, $value) }

sub _number {
    my ($value) = @_;
    my $plain = ref $value ? "$value" : $value;
    return looks_like_number($plain) ? $plain + 0 : undef;
}

sub event {
    my ($name) = @_;
    _name('an event', $name);
    Carp::croak('the event "gap" is the core\'s own') if $name eq 'gap';
    return;
}

sub subprotocols {
    my ($names) = @_;
    Carp::croak('subprotocols is a reference to an array of names') if ref $names ne 'ARRAY';
    Carp::croak('a WebSocket has at most ' . SUBPROTOCOLS_MAX . ' subprotocols to choose from') if @$names > SUBPROTOCOLS_MAX;
    for my $name (@$names) {
        _name('a sub-protocol', $name);
        Carp::croak(q(the name of a sub-protocol consists of letters, digits and !#$%&'*+.^_`|~-, not ) . $name) if $name !~ $TOKEN;
    }
    return;
}

sub content_type {
    my ($type) = @_;
    Carp::croak('a content type has at most ' . CONTENT_TYPE_MAX . ' bytes') if _size($type) > CONTENT_TYPE_MAX;
    return;
}

# The body of a message: text goes as UTF-8.
sub message {
    my ($text) = @_;
    my $bytes = "$text";
    utf8::encode($bytes) if utf8::is_utf8($bytes);
    Carp::croak('a message can have at most ' . MESSAGE_MAX . ' bytes') if length $bytes > MESSAGE_MAX;
    return bin($bytes);
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Checks - what the protocol requires of names, numbers and messages, told to whoever wrote them

=head1 FUNCTIONS

=head2 channel($name), event($name), job($name), queue($name), queue_text($text), key($text), content_type($text)

Die for what no core accepts, from the point of view of the caller.

=head2 seconds($what, $seconds), integer($what, $least, $most, $number), priority($number)

The same for numbers, which they return: finite seconds of 0 or more, and whole numbers of a range.

=head2 subprotocols(\@names)

The same for those of a WebSocket.

=head2 message($text)

The body of a message; characters become UTF-8.

=head2 json($data), from_json($bytes)

JSON as bytes; dies for what JSON does not have, such as infinity and NaN. What a client sent as data, and what it is instead
(C<undef> if it is JSON).

=head2 json_of($what, $data), plain($what, $data)

JSON, and MessagePack; what is no plain data is told from the point of view of the caller.

=cut
