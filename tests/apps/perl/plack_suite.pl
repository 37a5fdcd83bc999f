# Runs Plack::Test::Suite against a server that serves plack_suite.psgi at the port that is the argument.
use strict;
use warnings;
use LWP::UserAgent;
use Plack::Test::Suite;
use Test::More;

my ($port) = @ARGV;
my $client = LWP::UserAgent->new(timeout => 10, max_redirect => 0);
for my $number (0 .. $#Plack::Test::Suite::TEST) {
    my ($name, $test) = @{ $Plack::Test::Suite::TEST[$number] };
    subtest $name => sub {
        $test->(sub {
            my ($request) = @_;
            $request->uri->scheme('http');
            $request->uri->host('127.0.0.1');
            $request->uri->port($port);
            $request->header('X-Plack-Test' => $number);
            return $client->request($request);
        });
    };
}
done_testing;
