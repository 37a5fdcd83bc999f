package Parkade::Worker;

use strict;
use warnings;

use Parkade::Link       ();
use Parkade::Link::Loop ();
use Parkade::Loader     ();
use Parkade::Log        ();
use Parkade::Process    ();
use Parkade::Session    ();

sub main {
    my (@arguments) = @_;
    my ($reader, $writer) = Parkade::Process::take_link();
    if (!$reader || @arguments != 1) {
        print STDERR "Parkade starts this program itself: parkade serve app.psgi\n";
        return 2;
    }
    Parkade::Process::die_with_the_core();
    Parkade::Process::leave_signals_to_the_core();
    Parkade::Log::begin();
    my $session = Parkade::Session->new;
    my $link    = Parkade::Link->new($reader, $writer, $session);
    my $info    = $link->greet or return 0;
    Parkade::Link::Loop::expect();
    my $application = eval { Parkade::Loader::load($arguments[0], dev => !!$info->{dev}) };
    if (!$application) {
        $link->write($session->failed("$@") . $session->goodbye('stopping', ''));
        return 1;
    }
    return 0 if !$link->is_wanted;
    my ($how, $why) = $link->serve($application);
    return 0 if $how eq 'stopping' || $how eq 'gone';
    print STDERR "parkade worker: $how: $why\n";
    return 1;
}

sub run { Parkade::Process::leave(main(@_)) }

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Worker - a worker process: perl -MParkade::Worker -e 'Parkade::Worker::run(@ARGV)' TARGET

=head1 DESCRIPTION

Parkade starts it with the link as its standard input and output.

=head1 FUNCTIONS

=head2 main(@arguments)

Serves until the core says stop. Returns the exit status: 0 at an orderly end, 1 when the application cannot be loaded or the
core broke the protocol, 2 when a person started it.

=head2 run(@arguments)

The same, and ends the process.

=cut
