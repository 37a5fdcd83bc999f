package Parkade::Process;

use strict;
use warnings;

use Config     ();
use IO::Handle ();

# The numbers of prctl(2) and exit_group(2) by the architecture, where this has been tried.
my %CALLS = (x86_64 => { prctl => 157, exit_group => 231 }, aarch64 => { prctl => 167, exit_group => 94 });
use constant { PR_SET_PDEATHSIG => 1, SIGKILL => 9 };

sub take_link {
    return if !-p STDIN || !-p STDOUT;
    # Descriptors above $^F are closed when a program is started: it must not keep the link open.
    open my $reader, '<&', \*STDIN  or die "cannot take the link: $!\n";
    open my $writer, '>&', \*STDOUT or die "cannot take the link: $!\n";
    open STDIN,  '<',  '/dev/null' or die "cannot open /dev/null: $!\n";
    open STDOUT, '>&', \*STDERR    or die "cannot replace the standard output: $!\n";
    STDOUT->autoflush(1);
    STDERR->autoflush(1);
    binmode $reader;
    binmode $writer;
    return ($reader, $writer);
}

sub die_with_the_core {
    my $number = _call('prctl') or return;    # then the end of the link must suffice
    no warnings;
    syscall $number, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0;
    return;
}

sub _call {
    my ($name) = @_;
    my ($architecture) = $Config::Config{archname} =~ /\A(\w+)/;
    return $^O eq 'linux' && $CALLS{$architecture}{$name};
}

sub leave_signals_to_the_core {
    # Empty handlers instead of IGNORE, which every program that the application starts would inherit.
    $SIG{$_} = sub { } for qw(INT TERM HUP);
    $SIG{PIPE} = 'IGNORE';
    $SIG{USR1} = \&print_stack;
    return;
}

# Only the application's frames: those of this package tell nobody anything.
sub print_stack {
    my @lines;
    for (my $depth = 0; my ($package, $file, $line, $function) = caller $depth; $depth++) {
        next if $package =~ /\AParkade::/;
        $function = (caller $depth + 1)[3] // 'the main program';
        push @lines, "  $file line $line, in $function\n";
    }
    local ($\, $,);
    print STDERR 'The stack of the code that is running (most recent call first):', "\n", @lines;
    print STDERR "  none: the worker waits for requests\n" if !@lines;
    return;
}

# Ends the process at once, without waiting for what the application still has.
sub leave {
    my ($code) = @_;
    STDOUT->flush;
    STDERR->flush;
    # Nothing is loaded: the process may have no descriptor left, or be in a folder that has become its root.
    my $number = _call('exit_group');
    syscall $number, $code + 0 if $number;
    require POSIX;
    POSIX::_exit($code);
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Process - turns a process into a worker

=head1 FUNCTIONS

=head2 take_link

The two ends of the link, which the core left as standard input and output; F</dev/null> and the standard error take their
places, so that the application does not read frames, nor mix its output with them. Nothing if they are no pipes: then a
person started the program.

=head2 die_with_the_core

Has the kernel end this process when the core ends, even if it is stuck.

=head2 leave_signals_to_the_core

SIGUSR1 prints the stack. A terminal's signals are for the core, which tells its workers.

=head2 print_stack

Prints the stack of the application's code.

=head2 leave($code)

Ends the process at once.

=cut
