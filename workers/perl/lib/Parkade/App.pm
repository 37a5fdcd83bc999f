package Parkade::App;

use strict;
use warnings;

use Carp              ();
use Parkade::Checks   ();
use Parkade::Coroutine ();
use Parkade::Response ();
use Scalar::Util      qw(blessed);

our @CARP_NOT = qw(Parkade);

use constant {
    CONSTANT_MAX => 65_536,       # bytes of an answer that the core keeps. Then: the application does not load
    RETRIES_MAX  => 1_000_000,    # of a job. Then: the application does not load
    WHOLE_MAX    => 2**53,        # messages and bytes of a channel. Then: the application does not load
};

# What the application in this process declares. There is one: a worker runs one application.
my (@routes, @code, %jobs, @jobs, @channels, %queues);

my %ROUTE_OPTIONS   = map { ($_ => 1) } qw(deadline name);
my %JOB_OPTIONS     = map { ($_ => 1) } qw(queue retries deadline priority public);
my %QUEUE_OPTIONS   = map { ($_ => 1) } qw(concurrency rate);
my %CHANNEL_OPTIONS = map { ($_ => 1) } qw(count bytes age);

sub add_route {
    my ($methods, $path, $code, %options) = @_;
    my $is_socket = delete $options{websocket};
    Carp::croak("the WebSocket $path needs a code reference") if $is_socket && ref $code ne 'CODE';
    Carp::croak('a path must begin with a slash, not ' . ($path // 'undef')) if ($path // '') !~ m{\A/};
    Carp::croak("the methods of $path must be a reference to an array of names") if ref $methods ne 'ARRAY' || grep { !defined || ref } @$methods;
    Carp::croak("the route $path needs a code reference, a constant answer or a wait") if !defined $code;
    _check(\%options, \%ROUTE_OPTIONS);
    my (undef, $file, $line) = caller 1;
    my @names = $path =~ /\{(\w+)(?::\w+)?\}/g;
    push @routes, {
        methods => [map { uc } @$methods],
        path    => "$path",
        _kind($code, $options{deadline}),
        source  => "$file:$line",
        ($is_socket             ? (websocket => \1)             : ()),
        (defined $options{name} ? (name => "$options{name}") : ()),
    };
    push @code, [ref $code eq 'CODE' ? $code : sub { $code }, \@names];
    return;
}

# What the core answers itself, and what a worker is needed for.
sub _kind {
    my ($code, $deadline) = @_;
    if (ref $code eq 'CODE') {
        return (kind => _of($code), defined $deadline ? (deadline => Parkade::Checks::seconds('a deadline', $deadline)) : ());
    }
    if (blessed $code && $code->isa('Parkade::Wait')) {
        my ($wait, $then) = $code->parts(\&Parkade::Response::encoded);
        return (kind => 'wait', wait => $wait, then => $then);
    }
    my $answer = Parkade::Response::encoded($code);
    Carp::croak('a constant answer of a route can have at most 65,536 bytes') if length ${ $answer->[2] } > CONSTANT_MAX;
    return (kind => 'constant', answer => $answer);
}

sub _of { my ($code) = @_; return Parkade::Coroutine::is_async($code) ? 'async' : 'sync' }

sub add_channel {
    my ($pattern, %options) = @_;
    Parkade::Checks::channel($pattern);
    _check(\%options, \%CHANNEL_OPTIONS);
    my %told = map { ($_ => $options{$_}) } grep { defined $options{$_} } keys %options;
    $told{$_} = Parkade::Checks::integer($_, 0, WHOLE_MAX, $told{$_}) for grep { exists $told{$_} } qw(count bytes);
    $told{age} = Parkade::Checks::seconds('age', $told{age}) if exists $told{age};
    push @channels, ["$pattern", \%told];
    return;
}

sub add_job {
    my ($name, $code, %options) = @_;
    Parkade::Checks::job($name);
    Carp::croak("the job $name needs a code reference") if ref $code ne 'CODE';
    Carp::croak("a job named $name exists already") if $jobs{$name};
    _check(\%options, \%JOB_OPTIONS);
    my (undef, $file, $line) = caller 1;
    Parkade::Checks::queue($options{queue}) if defined $options{queue};
    my %numbers = map { ($_ => $options{$_}) } grep { defined $options{$_} } qw(retries deadline priority);
    $numbers{retries}  = Parkade::Checks::integer('retries', 0, RETRIES_MAX, $numbers{retries}) if exists $numbers{retries};
    $numbers{deadline} = Parkade::Checks::seconds('a deadline', $numbers{deadline}) if exists $numbers{deadline};
    $numbers{priority} = Parkade::Checks::priority($numbers{priority}) if exists $numbers{priority};
    my $is_private = exists $options{public} && !$options{public};
    push @jobs, {
        name => "$name", kind => _of($code), %numbers, source => "$file:$line",
        (defined $options{queue} ? (queue => "$options{queue}") : ()),
        ($is_private ? (access => 'private') : ()),
    };
    $jobs{$name} = $code;
    return;
}

# The core answers there itself.
sub add_jobs_path {
    my ($path) = @_;
    Carp::croak('the path of jobs must begin with a slash, and must not end with one') if ($path // '') !~ m{\A/.*[^/]\z};
    Carp::croak('jobs have an address already') if grep { $_->{kind} eq 'job' } @routes;
    my (undef, $file, $line) = caller 1;
    push @routes, { methods => [qw(GET DELETE)], path => "$path/{id}", kind => 'job', name => 'job', source => "$file:$line" };
    push @code, [sub { }, ['id']];
    return;
}

sub add_queue {
    my ($name, %options) = @_;
    Parkade::Checks::queue($name);
    _check(\%options, \%QUEUE_OPTIONS);
    Carp::croak("the queue $name has limits already") if $queues{$name};
    my ($concurrency, $rate) = @options{qw(concurrency rate)};
    Carp::croak('the concurrency of a queue must be an integer of 1 or more')
      if defined $concurrency && $concurrency !~ /\A[1-9][0-9]{0,8}\z/;
    Carp::croak('the rate of a queue must be a number above 0')
      if defined $rate && !($rate =~ /\A[0-9]*\.?[0-9]+\z/ && $rate > 0 && $rate < 9**9**9);
    $queues{$name} = { map { ($_ => $options{$_} + 0) } grep { defined $options{$_} } keys %options };
    return;
}

sub _check {
    my ($options, $known) = @_;
    my ($unknown) = grep { !$known->{$_} } keys %$options;
    Carp::croak("unknown option $unknown; the options are " . join ', ', sort keys %$known) if defined $unknown;
    return;
}

sub has_routes { return scalar @routes }
sub is_socket  { my ($number) = @_; return $routes[$number]{websocket} }
sub is_async   { my ($number) = @_; return $routes[$number]{kind} eq 'async' }
sub route      { my ($number) = @_; return @{ $code[$number] } }
sub job        { my ($name) = @_; return $jobs{$name} }

sub declared {
    my @limited = map { ["$_", $queues{$_}] } sort keys %queues;
    return (routes => [@routes], jobs => [@jobs], channels => [@channels], queues => \@limited);
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::App - what the application of this process declares

=head1 FUNCTIONS

=head2 add_route(\@methods, $path, $code, %options), add_job($name, $code, %options), add_queue($name, %options), add_jobs_path($path)

What L<Parkade>'s C<get>, C<post>, C<job>, C<queue> and C<jobs_at> do.

=head2 add_channel($pattern, %options)

What C<channel> with options does.

=head2 has_routes, is_async($number), is_socket($number), route($number), job($name), declared

Whether there is a route; whether a route's code is an C<async sub>; whether the route is a WebSocket; the code and the parameters' names of a route; the code of a job; the members of C<READY>.

=cut
