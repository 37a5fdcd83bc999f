# Signals while a worker waits for requests: their handlers run at once, in both loops.

use strict;
use warnings;
use lib 't/lib';

use Test::More;
use Time::HiRes ();
use Parkade::Compiled ();
use Parkade::Wire qw(:all);
use Both;

for my $is_compiled (Parkade::Compiled::IS_USED ? (1, 0) : 0) {
    my $which = $is_compiled ? 'in C' : 'in Perl';
    no warnings 'redefine';
    local *Parkade::PSGI::compiled = sub { } if !$is_compiled;

    # The handler of an alarm that the application has set runs while the worker waits, and ends the link.
    my ($ended, $sender) = served(sub {
        my ($close) = @_;
        return sub {
            $SIG{ALRM} = sub { $close->() };
            Time::HiRes::ualarm(20_000);
            return [200, [], ['set']];
        };
    });
    is_deeply($ended, ['gone', ''], "$which: the handler of an alarm runs while the worker waits");

    # A time limit of the application ends its own code.
    ($ended) = served(sub {
        my ($close) = @_;
        return sub {
            my $text = eval {
                local $SIG{ALRM} = sub { die "too late\n" };
                Time::HiRes::ualarm(20_000);
                1 while 1;
            } // $@;
            $close->();
            return [200, [], [$text]];
        };
    });
    is_deeply($ended, ['gone', ''], "$which: a time limit ends the code of the application");

    # An exception of a handler ends the worker, as it does in every Perl program that nobody protects.
    my $error = served(sub { return sub { $SIG{ALRM} = sub { die "a handler\n" }; Time::HiRes::ualarm(20_000); [200, [], []] } });
    is($error, "a handler\n", "$which: an exception of a handler is not hidden");
}
$SIG{ALRM} = 'DEFAULT';
done_testing;

# Serves one request from a pipe that stays open until the application closes it.
sub served {
    my ($make) = @_;
    pipe my $reader, my $sender or die $!;
    open my $writer, '>', '/dev/null' or die $!;
    my $link = Parkade::Link->new($reader, $writer, Parkade::Session->new);
    syswrite $sender, $HELLO;
    $link->greet or die 'no greeting';
    syswrite $sender, requests({});
    my @ended = eval { $link->serve(Parkade::PSGI->new($make->(sub { close $sender }))) } or return $@;
    return \@ended;
}
