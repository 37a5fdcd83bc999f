package Parkade;

use 5.026;
use strict;
use warnings;

our $VERSION = '0.1.0';

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade - run PSGI applications on the application server Parkade

=head1 SYNOPSIS

    parkade serve app.psgi

=head1 DESCRIPTION

Parkade owns the connections of clients and does the waiting; worker processes run your code. This distribution is the
worker for Perl. It is started by Parkade: see L<Parkade::Worker>. What an application finds in its environment is in
L<Parkade::PSGI>.

=cut
