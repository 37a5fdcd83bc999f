package Both;

# Runs an application in the compiled loop and in the one in Perl, over the same bytes, and compares all that they do.

use strict;
use warnings;

use Exporter   qw(import);
use Test::More;
use Parkade              ();
use Parkade::Compiled    ();
use Parkade::Link        ();
use Parkade::MessagePack qw(bin);
use Parkade::PSGI        ();
use Parkade::Session     ();
use Parkade::Wire        qw(:all);

our @EXPORT = qw($HELLO same differs ran head request requests noted);

our $HELLO = frame(F_HELLO, 0, payload(1, 1, 0, {}));

our $root = '';

my (@log, @seen);
{
    no warnings 'redefine';
    *Parkade::Log::record = sub {
        my ($level, $message, %more) = @_;
        my $text = join ' ', $level, $message, $more{exception} // (), 'of', Parkade::Link->current->running;
        push @log, $text =~ s/\(0x[0-9a-f]+\)/(ADDRESS)/gr;
        return;
    };
    *Parkade::Process::leave = sub { die "the worker leaves\n" };
}

# What comes of the bytes $start and then $rest, read in pieces of $size bytes. $make makes the application.
sub ran {
    my ($make, $start, $rest, $size, $is_compiled) = @_;
    (@log, @seen) = ();
    open my $reader, '+>:raw', undef or die $!;
    open my $writer, '+>:raw', undef or die $!;
    syswrite $reader, $start;
    sysseek $reader, 0, 0;
    my $link = Parkade::Link->new($reader, $writer, Parkade::Session->new);
    local $SIG{__WARN__} = sub { Parkade::Log::warned($_[0]) };
    no warnings qw(redefine once);
    local *Parkade::PSGI::compiled        = sub { }         if !$is_compiled;
    local *Parkade::Compiled::environment = sub { return } if !$is_compiled;
    local *Parkade::Compiled::requests    = sub { return $_[2] } if !$is_compiled;
    my @ended;
    if ($link->greet) {
        syswrite $reader, $rest;
        sysseek $reader, length $start, 0;
        $link->{receive_size} = $size if $size;
        @ended = eval { $link->serve(Parkade::PSGI->new($make->(), root_path => $root)) };
        push @ended, "$@" if $@;
    }
    delete $link->{application};    # what it has kept is forgotten before the link ends
    $link->{exchanges} = {};
    my $size_written = sysseek $writer, 0, 1;
    sysseek $writer, 0, 0;
    sysread $writer, my ($written), $size_written;
    return { ended => \@ended, log => [@log], seen => [@seen], written => shown($written) };
}

# What a session makes of the same bytes, whatever the application is.
sub as_read {
    my ($rest, $size, $is_compiled) = @_;
    no warnings qw(redefine once);
    local *Parkade::Compiled::requests = sub { return $_[2] } if !$is_compiled;
    my $session = Parkade::Session->new;
    $session->receive($HELLO);
    $session->ready(64, {});
    my @events = map { @{ $session->receive($_) } } $size ? unpack "(a$size)*", $rest : $rest;
    return { session => {%$session}, events => \@events };
}

# Frames for people; a process has a number of its own.
sub shown {
    my ($data) = @_;
    my @frames;
    while (length $data) {
        my ($length, $kind, $flags, $stream) = unpack 'NCCx2N', $data;
        my $frame = substr $data, 0, HEADER_SIZE + $length, '';
        my $payload = $kind == F_HELLO ? '' : substr $frame, HEADER_SIZE;
        $payload = length($payload) . ': ' . unpack '%32C*', $payload if length $payload > 2_000;
        push @frames, join ' ', $NAMES{$kind} // $kind, $flags, $stream, unpack 'H*', $payload;
    }
    return \@frames;
}

# Notes an environment, to be compared.
sub noted {
    my ($env) = @_;
    my %copy = %$env;
    $copy{'psgi.input'} = do { local $/; readline $env->{'psgi.input'} };
    seek $env->{'psgi.input'}, 0, 0;
    $copy{$_} = ref $copy{$_} for grep { ref $copy{$_} && $_ ne 'psgi.version' } keys %copy;
    push @seen, \%copy;
    return;
}

# What both do, if they differ.
sub differs {
    my ($make, $start, $rest, $size) = @_;
    my @both = map { my $ran = ran($make, $start, $rest, $size, $_); $ran->{read} = as_read($rest, $size, $_); $ran } 1, 0;
    my ($compiled, $perl) = map { explain($_) } @both;
    return $compiled eq $perl ? () : @both;
}

sub same {
    my ($name, $make, $start, $rest, @sizes) = @_;
    for my $size (undef, @sizes) {
        my $how = defined $size ? "$size at a time" : 'whole';
        my @both = differs($make, $start, $rest, $size);
        ok(!@both, "$name, $how") or is_deeply(@both);
    }
    return;
}

my $stream;

sub head {
    my (%told) = @_;
    my @fields = @{ $told{fields} || ['host', bin('example.com'), 'accept', bin('*/*')] };
    my @server = $told{at_socket} ? (0, '/run/socket', 0) : (40_000, '127.0.0.1', 8000);
    return [
        $told{method} // 'GET', $told{path} // '/path', $told{query} // '', \@fields, '192.0.2.1', $told{scheme} // 'http',
        $told{version} // '1.1', 'id', $told{is_short} ? () : @server
    ];
}

sub request {
    my (%told) = @_;
    my $body = $told{body} // '';
    my @rest = ($told{deadline}, $told{follows} ? undef : bin($body), exists $told{head} ? $told{head} : head(%told));
    return frame(F_REQUEST, ++$stream, payload($told{route}, $told{parameters} || [], @rest, @{ $told{more} || [] }),
        $told{follows} ? MORE : 0);
}

# The frames of these requests, from stream 1 on; text stands for itself.
sub requests {
    $stream = 0;
    return join '', map { ref $_ ? request(%$_) : $_ } @_;
}

1;
