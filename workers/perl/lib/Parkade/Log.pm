package Parkade::Log;

use strict;
use warnings;

use JSON::PP ();

use constant {
    MESSAGE_MAX   => 16_384,     # characters; then: the beginning is kept
    TRACEBACK_MAX => 16_384,     # characters; then: the end is kept. Each takes up to six bytes of a record's 131,072
};

my $json = JSON::PP->new->utf8->canonical;
my $mark;
my $stream = sub { 0 };

# The process keeps the mark to itself: a program that it starts, and text that it prints, cannot write records.
sub begin {
    ($mark) = split ' ', delete($ENV{PARKADE_LOG}) // '';
    $SIG{__WARN__} = \&warned if defined $mark;
    return;
}

sub of_stream { ($stream) = @_; return }

sub warned {
    my ($text) = @_;
    chomp $text;
    record('warn', $text);
    return;
}

sub failed {
    my ($what, $error, %more) = @_;
    chomp(my $text = "$error");
    my $first = (split /\n/, $text)[0] // '';
    record('error', length $first ? "$what: $first" : $what, exception => $first, $text =~ /\n/ ? (traceback => $text) : (), %more);
    return;
}

sub record {
    my ($level, $message, %members) = @_;
    if (!defined $mark) {
        print STDERR "$message\n";
        return;
    }
    $members{$_} = _shortened($members{$_}) for grep { defined $members{$_} } qw(exception);
    $members{traceback} = substr $members{traceback}, -TRACEBACK_MAX
      if length($members{traceback} // '') > TRACEBACK_MAX;
    my $of = $stream->();
    $members{stream} = $of + 0 if $of;
    # The first line end closes a line that was printed without one.
    my $line = $json->encode({ %members, level => $level, message => _shortened($message) });
    my $data = "\n\x1e$mark$line\n";
    STDERR->flush;
    while (length $data) {
        my $written = syswrite STDERR, $data;
        last if !defined $written && !$!{EINTR};
        substr $data, 0, $written // 0, '';
    }
    return;
}

sub _shortened {
    my ($text) = @_;
    return length $text > MESSAGE_MAX ? substr $text, 0, MESSAGE_MAX : "$text";
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Log - what the application logs, as records for the core

=head1 DESCRIPTION

A line on the standard error is a line in Parkade's log. A record says more: its level, and the request that it is about
(F<protocol/PROTOCOL.md>, I<The worker's log>). C<warn> writes one, unless the application has a handler of its own.

=head1 FUNCTIONS

=head2 begin

Sends records from now on, if the core that started this process takes them.

=head2 of_stream($code)

What tells for which stream the application is working; 0 for none.

=head2 record($level, $message, %members)

Writes a record.

=head2 failed($what, $error, %members)

Writes that something has failed.

=head2 warned($text)

The handler of C<warn>.

=cut
