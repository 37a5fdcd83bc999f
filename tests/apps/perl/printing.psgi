# What code prints for its requests, in every way and at every time.

use strict;
use warnings;
use feature 'say';

use Parkade;

my $text = ['Content-Type', 'text/plain'];
my @held;      # requests that another one answers: their names and responders

{
    package Printing::Body;

    sub new { my ($class, $name) = @_; return bless { name => $name, left => 3 }, $class }

    sub getline {
        my ($self) = @_;
        print STDERR "a piece of $self->{name}\n";
        return $self->{left}-- ? 'x' x 100_000 : undef;
    }

    sub close { my ($self) = @_; print STDERR "the end of $self->{name}\n"; return }
}

{
    package Printing::Guard;

    sub new { my ($class, $name) = @_; return bless \$name, $class }
    sub DESTROY { my ($self) = @_; print STDERR "$$self\n"; return }
}

my %pages = (
    hola   => sub { return [200, $text, ["Hola $_[1]"]] },
    quiet  => sub { return },
    print  => sub { print STDERR "$_[1]\n"; return },
    stdout => sub { print "$_[1]\n"; return },
    printf => sub { printf STDERR "%s\n", $_[1]; return },
    say    => sub { say STDERR $_[1]; return },
    method => sub { STDERR->print("$_[1]\n"); return },
    syswrite => sub { syswrite STDERR, "$_[1]\n"; return },
    errors => sub { print { $_[0]{'psgi.errors'} } "$_[1]\n"; return },
    logger => sub { my ($env, $name) = @_; my $logger = sub { $env->{'psgi.errors'}->print("$_[0]{message}\n") }; $logger->({ level => 'info', message => $name }); return },
    pieces => sub { print STDERR $_ for split(//, $_[1]), "\n"; return },
    own_warnings => sub { local $SIG{__WARN__} = sub { print STDERR @_ }; warn "$_[1]\n"; return },
    default_warnings => sub { local $SIG{__WARN__} = 'DEFAULT'; warn "$_[1]\n"; return },
    restored => sub {
        open my $saved, '>&', \*STDERR or die $!;
        open STDERR, '>', '/dev/null' or die $!;
        print STDERR "nowhere\n";
        open STDERR, '>&', $saved or die $!;
        print STDERR "$_[1]\n";
        return;
    },
    localised => sub {
        { local *STDERR; open STDERR, '>', \my $nowhere or die $!; print STDERR "nowhere\n" }
        print STDERR "$_[1]\n";
        return;
    },
    guard => sub { my $guard = Printing::Guard->new($_[1]); return },
    after => sub { my ($env, $name) = @_; push @{ $env->{'psgix.cleanup.handlers'} }, sub { print STDERR "$name\n" }; return },
    dies  => sub { my (undef, $name) = @_; my $guard = Printing::Guard->new("$name is destroyed"); die "of $name\n" },
    body  => sub { return [200, $text, Printing::Body->new($_[1])] },
    delay => sub { my (undef, $name) = @_; return sub { my ($respond) = @_; print STDERR "$name\n"; $respond->([200, $text, ['delayed']]) } },
    hold  => sub {
        my ($env, $name) = @_;
        print STDERR "$name is held\n";
        $env->{'parkade.on_cancel'}->(sub { print STDERR "$name has left\n" });
        return sub { my ($respond) = @_; push @held, [$name, $respond] };
    },
    release => sub { for (splice @held) { my ($name, $respond) = @$_; print STDERR "$name is released\n"; $respond->([200, $text, [$name]]) } return },
    child   => sub { my (undef, $name) = @_; system qq(echo "$name of a child" >&2); print STDERR `echo "$name"`; return },
    fork    => sub { my (undef, $name) = @_; if (!fork) { print STDERR "$name\n"; exec 'echo of another program >&2' } wait; return },
    file    => sub {
        my ($env, $name, $how) = @_;
        open STDERR, '>>', "$ENV{GATES}/$name" or die $!;
        print STDERR "printed\n";
        warn "warned\n";
        system 'echo of a child >&2';
        return [200, $text, [fileno STDERR]];
    },
    raises => sub { die "$_[1]\n" },
    enqueue => sub { my (undef, $name) = @_; my $job = enqueue prints => $name; return [200, $text, [$job->id]] },
);

job prints => sub { my ($name) = @_; print STDERR "$name\n"; return };

sub {
    my ($env) = @_;
    my (undef, $page, @rest) = split m{/}, $env->{PATH_INFO};
    my $code = $pages{ $page // '' } or return [404, $text, ['there is no such path']];
    return $code->($env, @rest) // [200, $text, ['printed']];
};
