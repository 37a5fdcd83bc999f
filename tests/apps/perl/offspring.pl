# What apps/offspring.py does, in Perl: prints, reads, forks, starts programs and closes descriptors in every way.

use strict;
use warnings;

use FindBin ();
use POSIX   ();
use lib "$FindBin::Bin/lib";
use Gates;
use Parkade;

my $FRAME = pack 'C12', 0, 0, 0, 0, 0x34, (0) x 7;    # a GOODBYE, if it is taken for one

syswrite STDOUT, "$FRAME\nwritten while it loads\n";
print "printed while it loads\n";
system 'echo', 'told by a program while it loads';

get '/hola/{name}'           => sub { my ($name) = @_; return "Hola $name" };
get '/after/{seconds:float}' => sub { my ($seconds) = @_; return after $seconds, 'after' };

# Printing

sub done_after { my ($code) = @_; return sub { $code->(); return 'done' } }

get '/print'   => done_after(sub { print "printed by the handler\n" });
get '/write'   => done_after(sub { syswrite STDOUT, "$FRAME\nwritten by the handler\n" });
get '/buffer'  => done_after(sub { local $| = 0; print "$FRAME\nbuffered by the handler\n"; STDOUT->flush });
get '/program' => done_after(sub { system 'sh', '-c', 'echo told by a program' });
get '/inheriting-program' => done_after(sub { local $^F = 1_023; system 'sh', '-c', 'echo told by a program that inherits' });
get '/shell' => done_after(sub { system 'echo told by a shell;' });
get '/fork'  => done_after(sub {
    waitpid child(sub { syswrite STDOUT, "told by a child\n" }), 0;
});

# A process that runs this code, and its id.
sub child {
    my ($code) = @_;
    my $pid = fork // die "cannot fork: $!";
    return $pid if $pid;
    $code->();
    POSIX::_exit(0);
}

# Reading

get '/read' => sub {
    my $told = `cat`;
    sysread STDIN, my $data, 100;
    return [$data, scalar readline(STDIN) // '', $told];
};

# Child processes that stay

get '/hold/{gate}' => sub { my ($gate) = @_; print "holds at $gate\n"; hold($gate); return 'held' };

# A daemon that keeps all its inherited descriptors, until the gate is opened.
get '/forked/{gate}' => sub {
    my ($gate) = @_;
    return child(sub { POSIX::setsid(); hold($gate) });
};

# The same as a separate program.
get '/started/{gate}' => sub {
    my ($gate) = @_;
    return child(sub { POSIX::setsid(); exec 'sh', '-c', "while ! test -e $ENV{GATES}/$gate; do sleep 0.01; done" });
};

# Starts a program, tells its process id, and waits for ever.
get '/helped' => sub {
    my $helper = child(sub { exec 'sleep', 600 });
    print "helper $helper.\n";
    waitpid $helper, 0;
    return 'not reached';
}, deadline => 0.5;

# Closing

get '/close-standard-streams' => sub { POSIX::close($_) for 0, 1; return 'closed' };
get '/close-everything' => sub { POSIX::close($_) for 3 .. 1_023; return 'closed' };

1;
