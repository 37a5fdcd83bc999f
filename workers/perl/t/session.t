# The session against the conversations of the protocol, whole and a byte at a time, and against itself where those do
# not lead.

use strict;
use warnings;
use lib 't/lib';

use Test::More;
use Parkade::MessagePack qw(encode decode bin);
use Parkade::Session     ();
use Parkade::Wire        qw(:all);
use Vectors              ();

# This worker has granted more by then.
my %OF_OTHER_WORKERS = ('rows beyond the window' => 1);

# It has WebSockets, but accepts none itself.
my $ACCEPTS_NONE = qr/that no worker holds|before the WebSocket is accepted|never opened|is denied/;

if (Vectors::there()) {
    for my $vector (Vectors::sessions()) {
        next if $vector->{feature} && !($vector->{feature} eq 'messages' && $vector->{name} =~ $ACCEPTS_NONE);
        next if $vector->{ends} =~ /by worker/ || $OF_OTHER_WORKERS{ $vector->{name} };
        follows($vector, undef, 'whole');
        follows($vector, 1,     'a byte at a time');
    }
}

sub follows {
    my ($vector, $size, $how) = @_;
    my $session = Parkade::Session->new;
    my @events;
    my $went_well = eval {
        for my $step (@{ $vector->{steps} }) {
            my $data = Vectors::unhex($step->{hex});
            if   ($step->{from} eq 'core') { push @events, fed($session, $data, $size) }
            else                           { play($session, $data) }
        }
        1;
    };
    diag $@ if !$went_well;
    my @ended = map { $_->[1] } grep { $_->[0] eq 'ended' } @events;
    is_deeply([$went_well, @ended], [1, expected_end($vector)], "$vector->{name}, $how");
    return;
}

# What the worker's end is told: nothing when it is the worker that says goodbye.
sub expected_end {
    my ($vector) = @_;
    return 'violation' if $vector->{ends} =~ /^violation by core/;
    return 'version' if $vector->{name} eq 'the core speaks only later versions';
    return ()        if $vector->{ends} ne 'closed' || $vector->{steps}[-1]{from} ne 'core';
    return $vector->{name} =~ /version/ ? 'version' : 'stopping';
}

sub fed {
    my ($session, $data, $size) = @_;
    $size = !$size ? length $data : length $data > 20_000 ? 977 : $size;
    my @events;
    push @events, @{ $session->receive(substr $data, 0, $size, '') } while length $data;
    return @events;
}

# Has the session write what the worker of a conversation wrote.
sub play {
    my ($session, $data) = @_;
    while (length $data) {
        my ($length, $kind, $flags, $stream) = unpack 'NCCx2N', $data;
        my $frame   = substr $data, 0, HEADER_SIZE + $length, '';
        my $payload = substr $frame, HEADER_SIZE;
        next if !exists $NAMES{$kind};
        my $told = $kind == F_DATA ? undef : decode($payload);
        if ($kind == F_READY) {
            $session->ready($told->[0], { interface => 'psgi', concurrent => $told->[1]{concurrent} });
        }
        elsif ($kind == F_RESPONSE && $flags & MORE) {
            $session->begin($stream, $payload);
        }
        elsif ($kind == F_PARK && $told->[1][0] eq 'branch') {
            my $of = $told->[1][1];
            next if !$session->held($of) && !$session->awaiting($of);
            $session->{branch} = $stream - 1;    # this worker would take another free number
            my $wait = substr $payload, 1, -length payload('branch', $of);
            is_deeply([$session->branch($of, $wait)], [$stream, $frame], 'a branch');
        }
        elsif ($kind == F_WINDOW_NAME()) {
            $session->read_body($stream);
        }
        elsif ($kind == F_ENQUEUE) {
            same($session->enqueue($stream, $payload), $frame);
        }
        elsif ($kind == F_PROGRESS) {
            same($session->progress($stream, $payload), $frame);
        }
        elsif ($kind == F_PARK && $session->held($stream)) {
            my $awaits = $told->[1][0] eq 'await' && $session->may_await($stream);
            $awaits ? $session->park_awaiting($stream, $payload) : $session->park($stream, $payload);
        }
        elsif (!$session->held($stream)) {
            next;
        }
        elsif ($kind == F_RESPONSE) {
            closes($session->respond($stream, $payload), $frame);
        }
        elsif ($kind == F_RESULT || $kind == F_CLOSE || $kind == F_ERROR && $told->[0] =~ /^(?:retry|discard|unknown)$/) {
            closes($session->end($stream, $kind, $payload), $frame);
        }
        elsif ($kind == F_DATA) {
            $session->data($stream, $payload);
            $session->finish($stream) if !($flags & MORE);
        }
        elsif ($kind == F_ERROR) {
            $session->error($stream, @$told);
        }
    }
    return;
}

sub F_WINDOW_NAME { return Parkade::Wire::F_WINDOWED }

sub same {
    my ($written, $expected) = @_;
    die "another frame was written\n" if $written ne $expected;
    return;
}

# A cancelled stream is closed by an ERROR instead.
sub closes {
    my ($written, $expected) = @_;
    return if $written eq $expected;
    die "another frame was written\n" if (unpack 'NC', $written)[1] != F_ERROR;
    return;
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
sub window { return frame(Parkade::Wire::F_WINDOWED, $_[0], payload($_[1])) }
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
    is($session->enqueue(1, 'job'), '', 'a job of a stream that is parked is kept');
    my $events = $session->receive(frame(F_RESUME, 0, payload(['elapsed'], [1])));
    is_deeply($events->[0], [reply => frame(F_ENQUEUE, 1, 'job')], 'until the stream is held again');
}
is_deeply(decode(substr Parkade::Session->new->failed("x" x 100_000 . "\x{fc}"), HEADER_SIZE)->[0],
    'x' x (LOG_TEXT_MAX - 2) . "\x{fc}", 'a text that is too long keeps its end');

done_testing;
