package Parkade::App;

use strict;
use warnings;

use Carp            ();
use Parkade::Checks ();

# What the application in this process declares. There is one: a worker runs one application.
my (@routes, @code, %jobs, @jobs);

my %ROUTE_OPTIONS = map { ($_ => 1) } qw(deadline name);
my %JOB_OPTIONS   = map { ($_ => 1) } qw(queue retries deadline priority);

sub add_route {
    my ($methods, $path, $code, %options) = @_;
    Carp::croak("a path begins with a slash: $path") if $path !~ m{\A/};
    Carp::croak('a route has a code reference, or a wait that is the same for everybody')
      if ref $code ne 'CODE' && !(ref $code && $code->isa('Parkade::Wait'));
    _check(\%options, \%ROUTE_OPTIONS);
    my (undef, $file, $line) = caller 1;
    my @names = $path =~ /\{(\w+)(?::\w+)?\}/g;
    push @routes, {
        methods => $methods,
        path    => "$path",
        kind    => 'sync',
        source  => "$file:$line",
        (defined $options{deadline} ? (deadline => $options{deadline} + 0) : ()),
        (defined $options{name}     ? (name     => "$options{name}")       : ()),
    };
    push @code, [ref $code eq 'CODE' ? $code : sub { $code }, \@names];
    return;
}

sub add_job {
    my ($name, $code, %options) = @_;
    Parkade::Checks::job($name);
    Carp::croak('a job has a code reference') if ref $code ne 'CODE';
    Carp::croak("there is a job $name already") if $jobs{$name};
    _check(\%options, \%JOB_OPTIONS);
    my (undef, $file, $line) = caller 1;
    my %numbers = map { ($_ => $options{$_} + 0) } grep { $_ ne 'queue' && defined $options{$_} } keys %options;
    push @jobs, {
        name => "$name", kind => 'sync', %numbers, source => "$file:$line",
        (defined $options{queue} ? (queue => "$options{queue}") : ()),
    };
    $jobs{$name} = $code;
    return;
}

sub _check {
    my ($options, $known) = @_;
    my ($unknown) = grep { !$known->{$_} } keys %$options;
    Carp::croak("there is no option $unknown, but " . join ', ', sort keys %$known) if defined $unknown;
    return;
}

sub has_routes { return scalar @routes }
sub route      { my ($number) = @_; return @{ $code[$number] } }
sub job        { my ($name) = @_; return $jobs{$name} }

sub declared { return (routes => [@routes], jobs => [@jobs]) }

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::App - what the application of this process declares

=head1 FUNCTIONS

=head2 add_route(\@methods, $path, $code, %options), add_job($name, $code, %options)

What L<Parkade>'s C<get>, C<post> and C<job> do.

=head2 has_routes, route($number), job($name), declared

Whether there is a route; the code and the parameters' names of a route; the code of a job; the members of C<READY>.

=cut
