# The session against the conversations of the protocol, whole, a byte at a time and through pipes that hold little, and
# against itself where those do not lead.

use strict;
use warnings;
use lib 't/lib';

use Test::More;
use Parkade::MessagePack qw(encode decode bin);
use Parkade::Session     ();
use Parkade::Wire        qw(:all);
use Vectors              ();
use Ways                 ();

# This worker has every optional part but one: whatever else a conversation `needs`, it is followed.
sub needs_more { my ($vector) = @_; return grep { $_ eq 'long_messages' } @{ $vector->{needs} } }

if (Vectors::there()) {
    for my $vector (grep { $_->{ends} !~ /by worker/ && !needs_more($_) } Vectors::sessions()) {
        follows($vector, $_->new(Parkade::Session->new)) for qw(Whole Bytewise ThinLink);
    }
}

# A worker that grants more than that of the conversation does gets nothing beyond its window.
sub follows {
    my ($vector, $way) = @_;
    my $session = $way->{session};
    my (@events, $window);
    my $went_well = eval {
        for my $step (@{ $vector->{steps} }) {
            my $data = Vectors::unhex($step->{hex});
            if ($step->{from} eq 'core') { push @events, $way->take($data) }
            else                         { $window += granted($data); $way->write(play($session, $data)) }
        }
        1;
    };
    diag $@ if !$went_well;
    my @expected = expected_end($vector);
    if ($vector->{ends} =~ /: window:/) {
        my $granted = granted(join '', map { $_->[1] } grep { $_->[0] eq 'reply' } @events);
        @expected = () if $granted > ($window || 0);
    }
    my @ended = map { $_->[1] } grep { $_->[0] eq 'ended' } @events;
    is_deeply([$went_well, @ended], [1, @expected], "$vector->{name}, " . ref $way);
    ok($way->is_through, "$vector->{name}: all that was written has arrived");
    return;
}

# Bytes that the worker grants in these frames.
sub granted {
    my ($data) = @_;
    my $bytes = 0;
    while (length $data) {
        my ($length, $kind) = unpack 'NC', $data;
        my $frame = substr $data, 0, HEADER_SIZE + $length, '';
        $bytes += decode(substr $frame, HEADER_SIZE)->[0] if $kind == F_WINDOWED;
    }
    return $bytes;
}

# What the worker's end is told: the violation, or what the GOODBYE says. It says that itself if it is about the version.
sub expected_end {
    my ($vector) = @_;
    return 'violation' if $vector->{ends} =~ /^violation by core/;
    return () if $vector->{ends} ne 'closed';
    my ($from, $code);
    for my $step (@{ $vector->{steps} }) {
        my $data = Vectors::unhex($step->{hex});
        while (length $data) {
            my ($length, $kind) = unpack 'NC', $data;
            my $frame = substr $data, 0, HEADER_SIZE + $length, '';
            ($from, $code) = ($step->{from}, decode(substr $frame, HEADER_SIZE)->[0]) if $kind == F_GOODBYE;
        }
    }
    return $from eq 'core' || $code eq 'version' ? $code : ();
}

# Has the session write what the worker of a conversation wrote. Returns what it does write.
sub play {
    my ($session, $data) = @_;
    my $written = '';
    while (length $data) {
        my ($length, $kind, $flags, $stream) = unpack 'NCCx2N', $data;
        my $frame = substr $data, 0, HEADER_SIZE + $length, '';
        $written .= exists $NAMES{$kind} ? played($session, $frame) // '' : '';
    }
    return $written;
}

sub played {
    my ($session, $frame) = @_;
    my (undef, $kind, $flags, $stream) = unpack 'NCCx2N', $frame;
    my $payload = substr $frame, HEADER_SIZE;
    my $told    = $kind == F_DATA || $kind == F_MESSAGE ? undef : decode($payload);
    if ($kind == F_READY) {
        return $session->ready($told->[0], { interface => 'psgi', concurrent => $told->[1]{concurrent} });
    }
    if ($kind == F_RESPONSE && $flags & MORE) {
        return $told->[0] == 101 ? same($session->accept($stream, $payload), $frame) : $session->begin($stream, $payload);
    }
    if ($kind == F_EARLY_HINTS) {
        return same($session->early_hints($stream, fields($told)), $session->wanted($stream) ? $frame : '');
    }
    if ($kind == F_MESSAGE) {
        my $is_text = $flags & TEXT;
        return same($session->message($stream, $payload, $is_text), $session->wanted($stream) ? $frame : '');
    }
    if ($kind == F_PARK && $told->[1][0] eq 'branch') {
        my $of = $told->[1][1];
        return if !$session->held($of) && !$session->awaiting($of);
        $session->{branch} = $stream - 1;    # this worker would take another free number
        my $wait = substr $payload, 1, -length payload('branch', $of);
        my ($branch, $written) = $session->branch($of, $wait);
        return same($written, $frame);
    }
    if ($kind == F_WINDOWED) {
        my $of_message = $told->[0] - MESSAGE_OVERHEAD;
        return $session->is_socket($stream) ? same($session->taken($stream, $of_message), $frame) : ($session->read_body($stream))[1];
    }
    if ($kind == F_ENQUEUE) {
        my $place = $session->takes_writes($stream) ? $stream : 0;
        return same($session->enqueue($stream, $payload), frame($kind, $place, $payload));
    }
    return same($session->progress($stream, $payload), $frame) if $kind == F_PROGRESS;
    return if !$session->held($stream);
    if ($kind == F_PARK) {
        my $awaits = $told->[1][0] eq 'await' && $session->may_await($stream);
        return $awaits ? $session->park_awaiting($stream, $payload) : $session->park($stream, $payload);
    }
    return closed($session->respond($stream, $payload), $frame) if $kind == F_RESPONSE;
    return closed($session->finish($stream, fields($told)), $frame) if $kind == F_TRAILERS;
    if ($kind == F_RESULT || $kind == F_CLOSE || $kind == F_ERROR && $told->[0] =~ /^(?:retry|discard|unknown)$/) {
        return closed($session->end($stream, $kind, $payload), $frame);
    }
    if ($kind == F_DATA) {
        my $written = $session->data($stream, $payload);
        return $flags & MORE ? $written : $written . $session->finish($stream);
    }
    return $session->error($stream, @$told) if $kind == F_ERROR;
    return;
}

# Names are text, values bytes.
sub fields {
    my ($told) = @_;
    my @fields = @{ $told->[0] };
    return [map { $_ % 2 ? bin($fields[$_]) : $fields[$_] } 0 .. $#fields];
}

sub same {
    my ($written, $expected) = @_;
    die "another frame was written\n" if $written ne $expected;
    return $written;
}

# A cancelled stream is closed by an ERROR instead.
sub closed {
    my ($written, $expected) = @_;
    return $written if $written eq $expected;
    die "another frame was written\n" if (unpack 'NC', $written)[1] != F_ERROR;
    return $written;
}

# What the conversations leave open

my $HEAD = payload(200, undef, undef);

sub ready {
    my ($concurrent, $features) = @_;
    my $session = Parkade::Session->new;
    $session->receive(frame(F_HELLO, 0, payload(1, 1, $features || 0, {})));
    $session->ready(8, { interface => 'psgi', concurrent => $concurrent });
    return $session;
}

sub request {
    my ($stream, $more) = @_;
    my $payload = payload(0, [], undef, $more ? undef : bin(''), ['GET', '/', '', [], '', 'http', '1.1']);
    return frame(F_REQUEST, $stream, $payload, $more ? MORE : 0);
}

sub data { my ($stream, $chunk, $more) = @_; return frame(F_DATA, $stream, $chunk, $more ? MORE : 0) }
sub cancel { return frame(F_CANCEL, $_[0], payload('client_left')) }
sub window { return frame(F_WINDOWED, $_[0], payload($_[1])) }
sub told { return [map { $_->[0] . ($_->[1] =~ /^\d+$/ ? " $_->[1]" : '') } @{ $_[0] }] }

{
    my $session = ready();
    my $chunk   = 'x' x INLINE_MAX;
    is_deeply(told($session->receive(request(1, 1) . request(2))), ['opened 1', 'opened 2'], 'a body holds nothing up');
    is_deeply([$session->read_body(1)], [undef, ''], 'more has to arrive first');
    is_deeply(told($session->receive(data(1, $chunk, 1) x 4)), [('arrived 1') x 4], 'pieces');
    is_deeply([$session->read_body(1)], [$chunk x 4, window(1, WINDOW)], 'what is read is granted again');
    $session->receive(data(1, 'end'));
    is_deeply([$session->read_body(1)], ['end', ''], 'the last piece');
    is_deeply([$session->read_body(1)], ['',    ''], 'the end');
    $session->respond(1, $HEAD);
    is_deeply($session->receive(data(1, 'late', 1)), [], 'what crosses the closing frame is dropped');
}
{
    my $session = ready(0, 1);
    $session->receive(request(1, 1) . data(1, 'x', 1));
    is_deeply([$session->read_body(1)], ['x', window(1, 0)], 'a core that sends bodies as they arrive hears that it is read');
    is_deeply([$session->read_body(1)], [undef, ''], 'once');
    $session->receive(request(2, 1));
    is_deeply([$session->read_body(2)], [undef, window(2, 0)], 'also if nothing has arrived');
    $session->receive(request(3, 1) . data(3, 'all'));
    is_deeply([$session->read_body(3)], ['all', ''], 'but not if all of it has');
}
{
    my $session = ready();
    $session->receive(request(1, 1) . data(1, 'x' x INLINE_MAX, 1) x 4);
    is_deeply(told($session->receive(data(1, 'x', 1))), [qw(reply ended)], 'what is not read is not granted again');
}
{
    my $session = ready();
    $session->receive(request(1));
    $session->begin(1, $HEAD);
    my $body = join '', map { chr($_ % 256) } 1 .. 512_000;
    my $sent = $session->data(1, $body);
    ok($session->blocked(1), 'an answer is kept back at its window');
    my @events;
    push @events, @{ $session->receive(window(1, 100_000)) } while $session->blocked(1);
    is($events[-1][0], 'writable', 'and goes on with it');
    $sent .= join '', map { $_->[1] } grep { $_->[0] eq 'reply' } @events;
    $sent .= $session->finish(1);
    my ($got, @sizes) = ('');
    while (length $sent) {
        my ($length, undef, $flags) = unpack 'NCC', $sent;
        push @sizes, $length;
        $got .= substr substr($sent, 0, HEADER_SIZE + $length, ''), HEADER_SIZE;
        is($flags, length $sent ? MORE : 0, 'MORE until the end') if !length $sent;
    }
    ok($got eq $body, 'the body is the same');
    is((sort { $b <=> $a } @sizes)[0], INLINE_MAX, 'in pieces');
}
{
    my $session = ready();
    is_deeply(told($session->receive(request(1) . cancel(1))), ['opened 1', 'cancelled 1'], 'cancelled');
    is((unpack 'NC', $session->respond(1, $HEAD))[1], F_ERROR, 'a cancelled stream is closed once, by an error');
    ok(!$session->held(1), 'it is closed');
    is_deeply($session->receive(cancel(1)), [], 'a CANCEL after that is ignored');
}
is_deeply(told(ready()->receive(request(1) . request(1))), ['opened 1', 'reply', 'ended'],
    'events before a violation are told');
{
    my $session = ready();
    is_deeply(told($session->receive(frame(F_GOODBYE, 0, payload('stopping', '')) . request(1))), ['ended'],
        'nothing is read after the end');
}
{
    my $session = ready(1);
    $session->receive(request(1) . request(2));
    $session->park_awaiting($_, payload(['timer', 1], ['await'])) for 1, 2;
    my $resume = frame(F_RESUME, 0, payload(['elapsed'], [2, 1]));
    my $call   = frame(F_RESUME, 0, payload(['elapsed'], [3, 4], 'm:f', [bin('a'), bin('b')]));
    my $events = $session->receive($resume . $call);
    is_deeply([map { $_->[1] } @$events], [[2, 1], 3, 4], 'one RESUME continues many, or opens many');
}
{
    my $session = ready(1);
    $session->receive(request(1));
    $session->park_awaiting(1, payload(['timer', 1], ['await']));
    is($session->enqueue(1, 'job'), frame(F_ENQUEUE, 1, 'job'), 'a stream that is parked takes jobs');
    $session->receive(frame(F_CANCEL, 1, payload('client_left')));
    is($session->enqueue(1, 'job'), frame(F_ENQUEUE, 0, 'job'), 'until it is cancelled');
}
is_deeply(decode(substr Parkade::Session->new->failed("x" x 100_000 . "\x{fc}"), HEADER_SIZE)->[0],
    'x' x (LOG_TEXT_MAX - 2) . "\x{fc}", 'a text that is too long keeps its end');

done_testing;
