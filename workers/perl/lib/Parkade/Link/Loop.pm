package Parkade::Link::Loop;

use strict;
use warnings;

use Parkade::Log ();

my $ready;    # while the loop runs

# Whether the application is non-blocking (psgi.nonblocking): it has loaded AnyEvent.
sub is_loaded { return exists $INC{'AnyEvent.pm'} }

# Waits until the handle is readable, while everything else that the loop has to do goes on. The watcher lives only here:
# code of the application that runs the loop itself must not take requests by that.
sub wait {
    my ($handle) = @_;
    $ready = AnyEvent->condvar;
    my $watcher = AnyEvent->io(fh => $handle, poll => 'r', cb => sub { $ready->send });
    while (!eval { $ready->recv; 1 }) {
        # An exception in a callback that nobody catches would end the worker.
        Parkade::Log::failed('while the event loop ran', $@);
    }
    undef $ready;
    return;
}

sub interrupt {
    $ready->send if $ready;
    return;
}

# Programs for Twiggy call AnyEvent without loading it, because Twiggy has loaded it. Whatever they call first loads it.
sub expect {
    return if is_loaded();
    no warnings 'once';
    *AnyEvent::AUTOLOAD = \&AnyEvent::_parkade_loads;
    return;
}

package AnyEvent;

our $AUTOLOAD;

sub _parkade_loads {
    my ($name) = $AUTOLOAD =~ /(\w+)\z/;
    return if $name eq 'DESTROY' || $name eq 'import' || $name eq 'unimport';
    delete @AnyEvent::{qw(AUTOLOAD _parkade_loads)};
    require AnyEvent;
    my $method = AnyEvent->can($name) or die qq{AnyEvent has no method "$name"\n};
    goto &$method;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Link::Loop - lets the application's event loop run between requests

=head1 DESCRIPTION

The loop is AnyEvent, with whatever it runs on: EV, POE, IO::Async and others. It counts as loaded as soon as the
application has loaded it, also in the middle of a request.

=head1 FUNCTIONS

=head2 is_loaded

Whether an event loop is in this process.

=head2 wait($handle)

Runs the loop until the handle is readable.

=head2 interrupt

Ends the wait.

=head2 expect

Loads AnyEvent at the first call of one of its methods, for programs that rely on Twiggy for that.

=cut
