package Parkade::Parked;

use strict;
use warnings;

use Carp         ();
use Scalar::Util qw(blessed);

our @CARP_NOT = qw(Parkade);

# Responses of PSGI that stand for waits: frameworks and middleware pass them on without looking at them. The field is
# the only thing that all of them keep. No client can guess its value, so none can be mistaken for another.
use constant {
    FIELD     => 'Parkade-Parked',
    KEPT_MAX  => 10_000,            # waits that were made and never returned. Then: all of them are forgotten
};

my %waits;
my $number = 0;
my $secret;

sub response {
    my ($wait) = @_;
    return [200, [FIELD, key($wait)], []];
}

sub key {
    my ($wait) = @_;
    Carp::croak('only a wait can be parked') if !blessed $wait || !$wait->isa('Parkade::Wait');
    %waits = () if keys %waits >= KEPT_MAX;
    $secret //= _secret();
    my $key = $secret . ++$number;
    $waits{$key} = $wait;
    return $key;
}

sub _secret {
    open my $random, '<:raw', '/dev/urandom' or die "cannot read /dev/urandom: $!\n";
    read $random, my $bytes, 16;
    return unpack('H*', $bytes) . '-';
}

# The waits that no response has brought yet.
sub waits { return \%waits }

# The wait that a response stands for, and the headers that were added to it; nothing for any other response.
sub wait_of {
    my ($headers) = @_;
    return if !%waits;
    my ($wait, @added);
    for (my $at = 0; $at < @$headers; $at += 2) {
        my ($name, $value) = @$headers[$at, $at + 1];
        if (lc($name // '') eq 'parkade-parked') { $wait = delete $waits{ $value // '' } }
        elsif (($name // '') !~ /\Acontent-/i)  { push @added, $name, $value }
    }
    return $wait ? ($wait, \@added) : ();
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Parked - waits in applications of PSGI

=head1 FUNCTIONS

=head2 response($wait)

A response that stands for the wait.

=head2 key($wait)

The value of the field C<Parkade-Parked> that makes a response of a framework stand for the wait:

    sub park { my ($c, $wait) = @_; $c->res->headers->header('Parkade-Parked' => Parkade::Parked::key($wait)); $c->rendered(200) }

=head2 waits

The waits that were made and not returned yet, by their keys.

=head2 wait_of(\@headers)

The wait that a response with these headers stands for, and the other headers.

=cut
