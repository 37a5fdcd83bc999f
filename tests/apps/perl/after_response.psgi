# The same as after_response.py: handlers of psgix.cleanup wait at a gate, or for ever.

use strict;
use warnings;

use Time::HiRes ();

my $text = ['Content-Type', 'text/plain'];

{
    package Body;
    sub new { my ($class, $next) = @_; return bless { next => $next }, $class }
    sub getline { return $_[0]{next}->() }
    sub close { return }
}

my %bodies = (
    whole    => sub { return ['done'] },
    streamed => sub { my @pieces = ('one ', 'two'); return Body->new(sub { return shift @pieces }) },
    fails    => sub { my @pieces = ('one '); return Body->new(sub { return shift @pieces // die "in the middle\n" }) },
    endless  => sub { return Body->new(sub { return 'x' x 10_000 }) },
);

sub work {
    my ($name) = @_;
    print STDERR "works in $$\n";
    Time::HiRes::sleep(0.01) while $name eq 'hang';
    Time::HiRes::sleep(0.01) until -e "$ENV{GATES}/$name";
    print STDERR "worked: $name\n";
    return;
}

sub {
    my ($env) = @_;
    my (undef, $kind, $name) = split m{/}, $env->{PATH_INFO}, 3;
    return [200, $text, ["$$"]] if $kind eq 'pid';
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { work($name) };
    return [200, $text, $bodies{$kind}->()];
};
