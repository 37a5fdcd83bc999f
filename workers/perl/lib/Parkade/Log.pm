package Parkade::Log;

use strict;
use warnings;

use Parkade::Trace ();
use Scalar::Util   qw(blessed);

use constant {
    MESSAGE_MAX   => 16_384,     # characters; then: the beginning is kept
    TRACEBACK_MAX => 16_384,     # characters; then: the end is kept. Each takes up to six bytes of a record's 131,072
    PIECE_MAX     => 8_192,      # characters of a printed line; then: it goes on in the next record
};

my $mark;
my $log;                         # what the standard error was at the beginning
my $stream = sub { 0 };

# The process keeps the mark to itself: a program that it starts, and text that it prints, cannot write records.
sub begin {
    ($mark) = split ' ', delete($ENV{PARKADE_LOG}) // '';
    return if !defined $mark;
    # The application may open the standard error anew.
    open $log, '>&', \*STDERR or die "cannot open the log: $!\n";
    require Parkade::Log::Handle;
    Parkade::Log::Handle->attach($_) for \*STDOUT, \*STDERR;
    $SIG{__WARN__} = \&warned;
    return;
}

# When Perl destroys what is left, it may destroy first what the handles are tied to.
END {
    if (defined $mark) { Parkade::Log::Handle->detach($_) for \*STDOUT, \*STDERR }
}

sub of_stream { ($stream) = @_; return }

# What the code that is running works for.
sub _of {
    my $of  = stream() or return;
    my $job = $Parkade::Native::job;
    return (stream => $of + 0, $job && defined $job->{id} ? (job => $job->name . ' (' . $job->id . ')') : ());
}

# At the end of the process, nobody may be there to be asked.
sub stream { return $stream && $stream->() || 0 }

sub warned {
    my ($text) = @_;
    # Where the application has the standard error go elsewhere, warnings go there, too.
    if (defined $mark && !Parkade::Log::Handle->is_log_at(\*STDERR)) {
        local ($\, $,);
        print STDERR $text;
        return;
    }
    $text =~ s/\n\z//;
    record('warn', $text);
    return;
}

# What code has printed on behalf of a request: each line is a record, as it would be a line of the log without.
sub printed {
    my ($bytes) = @_;
    my $of   = _members(_of());
    my $data = '';
    for my $line (split /(?<=\n)/, $bytes) {
        my $is_whole = $line =~ s/\r?\n\z//;
        my $text = _decoded($line);
        do {
            my $piece = substr $text, 0, PIECE_MAX, '';
            my $goes_on = length $text || !$is_whole ? 'true' : 'false';
            $data .= qq(\n\x1e${mark}{"level":"info","message":) . _string($piece) . qq(,"unfinished":$goes_on$of}\n);
        } while length $text;
    }
    _write($data);
    return;
}

sub _decoded {
    my ($bytes) = @_;
    return $bytes if $bytes !~ /[^\x00-\x7f]/;
    my $text = $bytes;
    if (!utf8::decode($text)) {
        require Encode;
        $text = Encode::decode('UTF-8', $bytes, Encode::FB_DEFAULT());
    }
    return _valid($text);
}

# Perl has characters that Unicode, and so JSON, does not have.
sub _valid {
    my ($text) = @_;
    $text =~ s/[^\x{0}-\x{d7ff}\x{e000}-\x{10ffff}]/\x{fffd}/g;
    return $text;
}

sub failed {
    my ($what, $error, %more) = @_;
    my $trace = blessed $error && $error->isa('Parkade::Trace') ? $error : Parkade::Trace->of($error);
    my ($first, $whole) = ($trace->first, $trace->whole);
    record('error', length $first ? "$what: $first" : $what, exception => $first, $whole =~ /\n/ ? (traceback => $whole) : (), %more);
    return;
}

sub record {
    my ($level, $message, %members) = @_;
    if (!defined $mark) {
        local ($\, $,);
        print STDERR "$message\n";
        return;
    }
    $members{$_} = _shortened($members{$_}) for grep { defined $members{$_} } qw(exception);
    $members{traceback} = _shown(length $members{traceback} > TRACEBACK_MAX ? substr $members{traceback}, -TRACEBACK_MAX : $members{traceback})
      if defined $members{traceback};
    %members = (%members, _of());
    # The first line end closes a line that was printed without one.
    STDERR->flush;
    _write("\n\x1e${mark}{" . substr(_members(%members, level => $level, message => _shortened($message)), 1) . "}\n");
    return;
}

# Members of a JSON object, each after a comma. A module for JSON would be a tenth of what a worker has in memory.
sub _members {
    my (%members) = @_;
    return join '', map { qq(,"$_":) . ($_ eq 'stream' ? $members{$_} : _string($members{$_})) } sort keys %members;
}

sub _string {
    my ($text) = @_;
    return 'null' if !defined $text;
    $text =~ s/([\x00-\x1f"\\])/sprintf '\\u%04x', ord $1/ge;
    utf8::encode($text);
    return qq("$text");
}

sub _write {
    my ($data) = @_;
    local $!;
    while (length $data) {
        my $written = syswrite $log, $data;
        last if !defined $written && !$!{EINTR};
        substr $data, 0, $written // 0, '';
    }
    return;
}

sub _shortened {
    my ($text) = @_;
    return _shown(length $text > MESSAGE_MAX ? substr $text, 0, MESSAGE_MAX : "$text");
}

# A text that a program without `use utf8` has is bytes.
sub _shown {
    my ($text) = @_;
    utf8::decode($text) if !utf8::is_utf8($text);
    return _valid($text);
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Log - what the application logs, as records for the core

=head1 DESCRIPTION

A line on the standard error is a line in Parkade's log. A record says more: its level, and the request that it is about
(F<protocol/PROTOCOL.md>, I<The worker's log>). C<warn> writes one, unless the application has a handler of its own; and what
code prints for a request is one, line by line (L<Parkade::Log::Handle>).

=head1 FUNCTIONS

=head2 begin

Sends records from now on, if the core that started this process takes them.

=head2 of_stream($code), stream

What tells for which stream the application is working; 0 for none. C<stream> asks it.

=head2 record($level, $message, %members)

Writes a record.

=head2 failed($what, $error, %members)

Writes that something has failed: an exception that was caught just now, or its L<Parkade::Trace>.

=head2 warned($text)

The handler of C<warn>. It prints the text if the standard error does not lead to the log: where the application wants it.

=head2 printed($bytes)

Writes the lines of what has been printed, as records of level C<info>. The end of a line may follow later.

=cut
