package Parkade::Compiled;

use strict;
use warnings;

use Config   ();
use XSLoader ();

# Which functions Parkade.xs has, with which arguments: an object file of another number is not used.
use constant BOUNDARY => 4;

my $state;
sub _why_not {
    return 'PARKADE_ACCELERATOR is 0' if ($ENV{PARKADE_ACCELERATOR} // '') eq '0';
    return 'this Perl checks where data comes from (-T)' if ${^TAINT};    # the loop would not mark it
    # Where build.sh puts it in a checkout; each Perl has a folder of its own, because another one would end at once.
    my $folder = __FILE__ =~ s{Compiled\.pm\z}{../../arch}r;
    local @INC = ("$folder/$Config::Config{version}/$Config::Config{archname}", @INC);
    local $@;
    return undef if eval { XSLoader::load('Parkade', BOUNDARY); 1 };
    my ($first) = split /\n/, "$@";
    return $first =~ /\ACan't locate loadable object / ? 'it was not built' : $first;
}

use constant IS_USED => !defined($state = _why_not());

sub state { return defined $state ? "not used: $state" : 'used' }

sub loop {
    my ($class, $link, %members) = @_;
    return IS_USED && $class->_loop({ %members, link => $link });
}

sub CLONE_SKIP { return 1 }    # a thread of the application has no link

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Compiled - the hot loop, the encoder and the reader of requests in C, if they were built

=head1 DESCRIPTION

F<Parkade.xs> serves the usual request of PSGI from reading to writing, and leaves everything else to Perl, which does the
same more slowly. It was built if there were a C compiler and Perl's headers when C<perl Makefile.PL> ran. It is not loaded
with C<PARKADE_ACCELERATOR=0> in the environment, nor in taint mode.

Each worker logs at level C<debug> whether it is used.

=head1 FUNCTIONS

=head2 IS_USED, state

Whether it is loaded; the same for people, with the reason.

=head2 environment($head)

The environment of PSGI that an encoded head tells, as far as L<Parkade::PSGI::Environment> makes it; C<undef> for an
unusual head. Only if it is loaded.

=head2 fields($head)

The fields of the query in an encoded head, as L<Parkade::Request> reads them; C<undef> for an unusual head, or if they are
too many. Only if it is loaded.

=head2 encode($value)

What L<Parkade::MessagePack> makes of a value, or C<undef> if the value holds anything that is not usual: what is tied,
objects of other classes, text that is not UTF-8, large hashes. Only if it is loaded.

=head2 requests($session, $data, $at, \@events)

What L<Parkade::Session> makes of the usual requests that begin at that position: events, and streams that are held.
Returns the position of whatever comes after them. Only for a session that is ready and waits for no rows, and only if it is
loaded.

=head2 loop($link, %members)

A loop for the link, whose members C and Perl share; false if there is none. The members are C<application>, its C<code>,
C<make_ticket> (what makes the closures of an environment), C<same> (keys and values of every environment), C<root> (the
prefix of its paths), C<waits>, C<reader> and C<writer> (descriptors), and C<receive_size>.

=head2 serve

Reads the link, and serves what is usual. Returns false if the core has gone, and true if Perl has to look.

=head2 CLONE_SKIP

Keeps loops out of threads.

=cut
