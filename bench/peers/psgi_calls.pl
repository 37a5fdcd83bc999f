# Calls an application of PSGI without a server: psgi_calls.pl APP PATH SECONDS. Prints JSON.
use strict;
use warnings;

use Plack::Util ();
use Time::HiRes qw(time);

my ($file, $path, $seconds) = @ARGV;
my $app = Plack::Util::load_psgi($file);

# What a server makes of a request of wrk.
sub environment {
    open my $input, '<', \q{} or die $!;
    return {
        REQUEST_METHOD         => 'GET',
        SCRIPT_NAME            => q{},
        PATH_INFO              => $path,
        REQUEST_URI            => $path,
        QUERY_STRING           => q{},
        SERVER_NAME            => '127.0.0.1',
        SERVER_PORT            => 8000,
        SERVER_PROTOCOL        => 'HTTP/1.1',
        REMOTE_ADDR            => '127.0.0.1',
        REMOTE_PORT            => 40_000,
        HTTP_HOST              => '127.0.0.1:8000',
        'psgi.version'         => [1, 1],
        'psgi.url_scheme'      => 'http',
        'psgi.input'           => $input,
        'psgi.errors'          => \*STDERR,
        'psgi.multithread'     => 0,
        'psgi.multiprocess'    => 1,
        'psgi.run_once'        => 0,
        'psgi.nonblocking'     => 0,
        'psgi.streaming'       => 1,
        'psgix.input.buffered' => 1,
    };
}

sub answer {
    my ($status, $text);
    my $take = sub {
        my ($response) = @_;
        $status = $response->[0];
        Plack::Util::foreach($response->[2], sub { $text .= $_[0] });
    };
    my $response = $app->(environment());
    ref $response eq 'CODE' ? $response->($take) : $take->($response);
    die "answers $status\n" if $status != 200;
    return $text;
}

sub cpu_seconds { my ($user, $system) = times; return $user + $system }

my $until = time + 0.5;    # a warm-up
answer() while time < $until;

my ($calls, $began, $cpu_before) = (0, time, cpu_seconds());
while (time < $began + $seconds) {
    answer() for 1 .. 50;
    $calls += 50;
}
printf qq({"calls": %d, "seconds": %.6f, "cpu_seconds": %.6f, "text": "%s"}\n), $calls, time - $began, cpu_seconds() - $cpu_before,
    answer();
