# A PSGI application without a framework: what PSGI allows, and what it forbids.

use strict;
use warnings;
use utf8;

use Scalar::Util qw(weaken);
use JSON::PP ();
use Time::HiRes ();

my $json = JSON::PP->new->canonical->ascii;
my $text = ['Content-Type', 'text/plain'];
my @waiting;      # responders of requests that another request answers

sub wait_at {
    my ($gate) = @_;
    my $file = "$ENV{GATES}/$gate";
    Time::HiRes::sleep(0.01) until -e $file;
    return;
}

{
    package Lines;

    sub new { my ($class, @lines) = @_; return bless { lines => [@lines] }, $class }

    sub getline {
        my ($self) = @_;
        my $line = shift @{ $self->{lines} };
        return ref $line eq 'CODE' ? $line->() : $line;
    }

    sub close { print STDERR "the body is closed\n"; return }
}

{
    package Endless;

    sub new { return bless {}, shift }
    sub getline { return 'x' x 10_000 }
    sub close { print STDERR "the body is closed\n"; return }
}

my %pages = (
    environ => sub {
        my ($env) = @_;
        my %told = map { ($_ => ref $env->{$_} ? ref $env->{$_} : "$env->{$_}") } keys %$env;
        $told{$_} = $env->{$_} ? 'yes' : 'no' for grep { exists $env->{$_} } map { ("psgi.$_", "psgix.$_") }
          qw(multithread multiprocess run_once streaming nonblocking input.buffered cleanup harakiri);
        $told{'psgi.version'} = join '.', @{ $env->{'psgi.version'} };
        return [200, ['Content-Type', 'application/json'], [$json->encode(\%told)]];
    },
    echo => sub {
        my ($env) = @_;
        my $body = do { local $/; readline $env->{'psgi.input'} } // '';
        return [200, $text, [$body]];
    },
    twice => sub {
        my ($env) = @_;
        my $input = $env->{'psgi.input'};
        my ($first, $again, $size) = ('', '', 0);
        while (my $read = $input->read(my $piece, 8192)) { $size += $read }
        seek $input, 3, 0;
        $input->read($again, 5);
        return [200, $text, ["$size $env->{CONTENT_LENGTH} $again"]];
    },
    count => sub {
        my ($env) = @_;
        my ($input, $size) = ($env->{'psgi.input'}, 0);
        while (my $read = $input->read(my $piece, 65_536)) { $size += $read }
        return [200, $text, [$size]];
    },
    back => sub { my ($env) = @_; return [200, $text, $env->{'psgi.input'}] },
    down => sub {
        my (undef, $count, $how) = @_;
        my $fields = [@$text, 'Content-Length', $count * 65_536];
        return [200, $fields, Lines->new((sub { 'x' x 65_536 }) x $count)] if !defined $how;
        return sub {
            my ($respond) = @_;
            my $writer = $respond->([200, $fields]);
            $writer->write('x' x 65_536) for 1 .. $count;
            $writer->close;
        };
    },
    fields => sub { return [201, [@$text, 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Empty', ''], ['fields']] },
    nothing => sub { return [204, [], []] },
    empty => sub { return [200, $text, []] },
    pieces => sub { return [200, $text, ['one ', 'two']] },
    lines => sub { return [200, $text, Lines->new('one ', '', 'two')] },
    held => sub {
        my (undef, $gate) = @_;
        return [200, $text, Lines->new('one ', sub { wait_at($gate); 'two' })];
    },
    file => sub {
        open my $handle, '+>', undef or die $!;
        print {$handle} 'x' x 200_000;
        seek $handle, 0, 0;
        return [200, $text, $handle];
    },
    endless => sub { return [200, $text, Endless->new] },
    broken => sub { return [200, $text, Lines->new('one', sub { die "in the middle\n" })] },
    length => sub {
        my (undef, $told, $size) = @_;
        return sub {
            my ($respond) = @_;
            my $writer = $respond->([200, [@$text, 'Content-Length', $told]]);
            $writer->write('x' x $size);
            $writer->close;
        };
    },
    delayed => sub {
        return sub { my ($respond) = @_; $respond->([200, $text, ['delayed']]) };
    },
    writer => sub {
        my (undef, $gate) = @_;
        return sub {
            my ($respond) = @_;
            my $writer = $respond->([200, $text]);
            $writer->write('one ');
            wait_at($gate) if defined $gate;
            $writer->write('two');
            $writer->close;
        };
    },
    forgotten => sub {
        return sub { my ($respond) = @_; my $writer = $respond->([200, $text]); $writer->write('written') };
    },
    aside => sub {
        my ($env) = @_;
        $env->{'parkade.on_cancel'}->(sub { print STDERR "told: $_[0]\n" });
        print STDERR "put aside\n";
        return sub { my ($respond) = @_; push @waiting, $respond };
    },
    # Whoever holds the environment, or its handlers, may still change it before the response.
    aside_with => sub {
        my ($env, $what) = @_;
        my $name = $env->{PATH_INFO};
        my $kept = $what eq 'environment' ? $env : $what eq 'handlers' ? $env->{'psgix.cleanup.handlers'} : undef;
        weaken(my $seen = $env);
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { print STDERR "cleaned up after $_[0]{PATH_INFO}\n" } if $what eq 'before';
        return sub {
            my ($respond) = @_;
            my $later = sub {
                my $handlers = ref $kept eq 'HASH' ? $kept->{'psgix.cleanup.handlers'} : $kept;
                push @$handlers, sub { print STDERR "cleaned up after $name\n" } if $handlers;
                $kept->{'psgix.harakiri.commit'} = 1 if ref $kept eq 'HASH';
                undef $kept;
                $respond->([200, $text, [defined $seen ? 'it is kept' : 'it is gone']]);
            };
            push @waiting, $later;
        };
    },
    release => sub {
        my $count = @waiting;
        $_->([200, $text, ['released']]) for splice @waiting;
        return [200, $text, [$count]];
    },
    drop => sub { @waiting = (); return [200, $text, ['dropped']] },
    nobody => sub { return sub { } },
    second => sub {
        return sub { my ($respond) = @_; $respond->([200, $text, ['first']]); $respond->([200, $text, ['second']]) };
    },
    cleanup => sub {
        my ($env, $gate) = @_;
        push @{ $env->{'psgix.cleanup.handlers'} }, sub {
            my ($told) = @_;
            wait_at($gate);
            print STDERR "cleaned up after $told->{PATH_INFO}\n";
        };
        return [200, $text, ['before']];
    },
    harakiri => sub {
        my ($env) = @_;
        $env->{'psgix.harakiri.commit'} = 1;
        return [200, $text, ["$$"]];
    },
    pid => sub { return [200, $text, ["$$"]] },
    publish => sub {
        my ($env, $channel) = @_;
        $env->{'parkade.publish'}->($channel, 'héllo');
        return [200, $text, ['published']];
    },
    prints => sub {
        my ($env) = @_;
        print "to the standard output\n";
        $env->{'psgi.errors'}->print("to psgi.errors\n");
        warn "a warning";
        system 'echo of a child';
        return [200, $text, ['printed']];
    },
    latin => sub { my $name = "J\x{fc}rgen"; utf8::upgrade($name); return [200, [@$text, 'X-Name', $name], [$name]] },
    wide => sub { return [200, $text, ["\x{263a}"]] },
    raises => sub { die "at once\n" },
    object => sub { die { an => 'object' } },
    text => sub { return 'text' },
    undef => sub { return undef },
    status => sub { return ['fine', [], []] },
    large => sub { return [200, ['X-Large' => 'x' x 2_000_000], []] },
    body => sub { return [200, [], 'text'] },
    exits => sub { exit 3 },
    exits_later => sub { return sub { exit } },
    exits_cleanup => sub { my ($env) = @_; push @{ $env->{'psgix.cleanup.handlers'} }, sub { exit }; return [200, $text, ['cleaned']] },
    exits_midway => sub {
        my (undef, $how) = @_;
        return [200, $text, Lines->new('one ', sub { exit 3 })] if $how eq 'body';
        return sub { my ($respond) = @_; my $writer = $respond->([200, $text]); $writer->write('one '); exit 3 };
    },
    lasts => sub { no warnings 'exiting'; last },
    leaves_body => sub {
        my (undef, $how) = @_;
        no warnings 'exiting';
        return [200, $text, Lines->new('one ', $how eq 'last' ? sub { last } : $how eq 'next' ? sub { next } : sub { redo })];
    },
    leaves_cleanup => sub {
        my ($env) = @_;
        no warnings 'exiting';
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { last }, sub { print STDERR "the second one runs\n" };
        return [200, $text, ['before']];
    },
    forks_after => sub {
        my ($env) = @_;
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { defined fork or die $! };
        return [200, $text, ['forked']];
    },
    child_dies => sub {
        my $child = fork // die $!;
        die "in the child\n" if !$child;
        waitpid $child, 0;
        return [200, $text, [$? >> 8]];
    },
    thread => sub {
        require threads;
        return [200, $text, [threads->create(sub { print STDERR "in a thread\n"; 42 })->join]];
    },
    child_loads_nothing => sub {
        my $child = fork // die $!;
        @INC = () if !$child;
        return [200, $text, ['from the child']] if !$child;
        waitpid $child, 0;
        return [200, $text, [$?]];
    },
    forks => sub {
        my $child = fork // die $!;
        return [200, $text, ['from the child']] if !$child;
        waitpid $child, 0;
        return [200, $text, ['from the parent']];
    },
    stuck => sub { 1 while 1 },
    hola => sub { my (undef, $name) = @_; return [200, $text, ["Hola $name"]] },
);

sub {
    my ($env) = @_;
    my (undef, $page, @rest) = split m{/}, $env->{PATH_INFO};
    my $code = $pages{ $page // '' } or return [404, $text, ['there is no such path']];
    return $code->($env, @rest);
};
