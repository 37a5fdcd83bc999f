package Parkade::Worker;

use strict;
use warnings;

use Cwd                 ();
use Parkade::Compiled   ();
use Parkade::Link       ();
use Parkade::Link::Loop ();
use Parkade::Loader     ();
use Parkade::Log        ();
use Parkade::Process    ();
use Parkade::Session    ();
use Parkade::Sources    ();
use Parkade::Trace      ();

my $is_told;    # that it has to end
my $ends_early;    # what tells the core that the application calls exit

END { $ends_early->() if $ends_early }

sub main {
    my (@arguments) = @_;
    return _told() if @arguments != 1;
    return work(sub { my ($info) = @_; Parkade::Loader::load($arguments[0], settings($info)) });
}

# What the core's HELLO says about how the application is to be run.
sub settings {
    my ($info) = @_;
    die "--factory is for Python: $info->{target} gives the application itself, so leave --factory out\n" if $info->{factory};
    return (dev => !!$info->{dev}, root_path => $info->{root_path} // '', interface => $info->{interface});
}

sub _told {
    print STDERR "Parkade starts this program itself: parkade serve app.psgi\n";
    return 2;
}

sub work {
    my ($load) = @_;
    my ($reader, $writer) = Parkade::Process::take_link();
    return _told() if !$reader;
    Parkade::Process::die_with_the_core();
    Parkade::Process::leave_signals_to_the_core();
    Parkade::Log::begin();
    my $session = Parkade::Session->new;
    my $link    = Parkade::Link->new($reader, $writer, $session);
    my $info    = $link->greet or return 0;
    Parkade::Link::Loop::expect();
    my $target = Cwd::abs_path($info->{target} // '');    # the application may go to another folder
    Parkade::Trace::begin(dev => $info->{dev}, stream => sub { $link->running });
    my $fails  = sub {
        my ($why) = @_;
        my $watched = $info->{dev} ? Parkade::Sources::watched($target) : [];
        $link->write($session->failed($why, $watched) . $session->goodbye('stopping', ''));
    };
    my $pid = $$;
    $ends_early = sub { $fails->("the application called exit($?) while it was loaded\n") if $$ == $pid };
    my $application = eval {
        my $loaded = $load->($info);
        $link->watch(Parkade::Sources::watched($target)) if $info->{dev};
        $link->check($loaded);
    };
    undef $ends_early;
    my $error = $application ? undef : Parkade::Trace->of($@);
    Parkade::Trace::settle();
    if ($error) {
        $fails->($error->of_loading);
        return 1;
    }
    Parkade::Log::record('debug', 'the compiled loop is ' . Parkade::Compiled::state()) if $application->can('compiled');
    return 0 if !$link->is_wanted;
    $ends_early = sub { local ($@, $!, $?); $link->exits if $$ == $pid };
    my ($how, $why) = $link->serve($application);
    undef $ends_early;
    $is_told = $how eq 'stopping';
    return 0 if $is_told || $how eq 'gone';
    local ($\, $,);
    print STDERR "parkade worker: $how: $why\n";
    return 1;
}

# Destructors and END blocks are the shut-down hooks of Perl, unless the core has gone.
sub run { end(main(@_)) }

sub end {
    my ($status) = @_;
    Parkade::Process::leave($status) if $status || !$is_told;
    exit 0;
}

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

=head2 work($load)

The same with an application that C<< $load->($info) >> returns; C<$info> is the information in the core's C<HELLO>.

=head2 run(@arguments)

What C<main> does, and ends the process.

=head2 end($status)

Ends the process: with its C<END> blocks and destructors, if the core has said stop.

=head2 settings($info)

The settings of the application, from the core's C<HELLO>. Dies if one asks for what Perl does not have.

=cut
