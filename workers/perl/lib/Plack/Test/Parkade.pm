package Plack::Test::Parkade;

use strict;
use warnings;

use Cwd            ();
use Errno          qw(EAGAIN EINTR);
use File::Basename ();
use File::Temp     ();
use IO::Handle     ();
use POSIX          ();
use Socket qw(PF_INET PF_UNIX SOCK_STREAM SOMAXCONN inet_aton pack_sockaddr_in pack_sockaddr_un unpack_sockaddr_in);

# The path of the socket at which this process waits for the one that the server takes for its worker.
use constant MEETING => 'PLACK_TEST_PARKADE';

use constant {
    RECEIVE_SIZE => 65_536,
    GLANCE       => 0.02,      # seconds between two looks at whether the server has ended instead of starting
};

my $server;    # one for this process, whatever applications it tests: pid, port, link, folder

sub new {
    my ($class, $application) = @_;
    require HTTP::Request;
    require HTTP::Response;
    require Parkade::PSGI;
    my $self = bless {}, $class;
    $self->{application} = Parkade::PSGI->new(_telling($application, $self->{at} = []));
    return $self;
}

# As with Plack::Test::MockHTTP, the server is where the request says, and the response says what the application died of.
sub _telling {
    my ($application, $at) = @_;
    return sub {
        my ($env) = @_;
        @$env{qw(SERVER_NAME SERVER_PORT)} = @$at;
        return eval { $application->($env) } // [500, ['Content-Type', 'text/plain'], [$@]];
    };
}

sub request {
    my ($self, $request) = @_;
    local $SIG{PIPE} = 'IGNORE';
    $server = undef if $server && $server->{owner} != $$;    # that of the process which has forked this one
    $server //= _start($self->{application});
    $server->{link}->application($self->{application});
    my $written = _written($request);
    @{ $self->{at} } = ($request->uri->host, $request->uri->port);
    my $response = $self->_answer_to($written, $request->method eq 'HEAD');
    $response->request($request);
    return $response;
}

# What Plack::Test::MockHTTP makes of it, as bytes.
sub _written {
    my ($request) = @_;
    my $uri = $request->uri;
    $uri->scheme('http')    if !defined $uri->scheme;
    $uri->host('localhost') if !defined $uri->host;
    my $content = $request->content;
    my $headers = $request->headers->clone;
    $headers->header(Host => $uri->port == $uri->default_port ? $uri->host : $uri->host_port) if !defined $headers->header('Host');
    # A length that is not true can only be told to an application that is called directly.
    $headers->remove_header('Content-Length');
    $headers->header('Content-Length' => length $content) if length $content;
    my $target = $uri->path_query;
    $target = "/$target" if $target !~ m{\A/};
    return $request->method . " $target HTTP/1.1\r\n" . $headers->as_string("\r\n") . "\r\n$content";
}

# Sends it, and serves the link until the answer is there: the application runs in this process, as its test expects.
sub _answer_to {
    my ($self, $written, $is_head) = @_;
    my ($link, $answer) = ($server->{link}, '');
    socket my $client, PF_INET, SOCK_STREAM, 0 or die "cannot make a socket: $!\n";
    connect $client, pack_sockaddr_in($server->{port}, inet_aton('127.0.0.1')) or die "cannot connect: $!\n";
    $client->blocking(0);
    while (1) {
        my ($may_serve, $may_read, $may_write) = _wait($link->reader, $client, length $written);
        if ($may_serve) {
            my ($how, $why) = $link->turn;
            die "Parkade has ended the link: $how $why\n" if $how;
        }
        if ($may_write) {
            my $sent = syswrite $client, $written;
            if    (defined $sent)                  { substr $written, 0, $sent, '' }
            elsif ($! != EAGAIN && $! != EINTR)    { $written = '' }                   # refused, and answered
        }
        next if !$may_read;
        my $read = sysread $client, $answer, RECEIVE_SIZE, length $answer;
        my $is_over  = defined $read ? !$read : $! != EAGAIN && $! != EINTR;
        my $response = _response($answer, $is_head, $is_over);
        return $response if $response;
    }
}

# What may be done without waiting. Meanwhile an event loop goes on.
sub _wait {
    my ($link, $client, $has_more) = @_;
    my @watched = ([$link, 'r'], [$client, 'r'], $has_more ? [$client, 'w'] : ());
    if ($INC{'AnyEvent.pm'}) {
        my @can;
        my $one = AnyEvent->condvar;
        my @watchers = map {
            my $at = $_;
            AnyEvent->io(fh => $watched[$at][0], poll => $watched[$at][1], cb => sub { $can[$at] = 1; $one->send })
        } 0 .. $#watched;
        $one->recv;
        return @can;
    }
    my @sets = ('', '');
    vec($sets[$_->[1] eq 'w'], fileno $_->[0], 1) = 1 for @watched;
    return if select($sets[0], $sets[1], undef, undef) <= 0;
    return map { vec $sets[$_->[1] eq 'w'], fileno $_->[0], 1 } @watched;
}

# The response in these bytes; nothing if more has to come. The application is sent no field that its test did not send, so
# the connection stays open.
sub _response {
    my ($answer, $is_head, $is_over) = @_;
    my ($head, $body);
    do {
        ($head, $body) = split /\r\n\r\n/, $answer, 2;
        return if !defined $body && !$is_over;
        $answer = $body //= '';
    } while $head =~ m{\AHTTP/1.1 1};
    my $response = HTTP::Response->parse("$head\r\n\r\n");
    my $length   = $response->header('Content-Length');
    if ($is_head || $response->code =~ /\A[23]04\z/) {
        $body = '';
    }
    elsif (($response->header('Transfer-Encoding') // '') eq 'chunked') {
        ($body, my $is_whole) = _joined($body);
        return if !$is_whole && !$is_over;
    }
    elsif (!$is_over && (!defined $length || length $body < $length)) {
        return;
    }
    $response->remove_header('Transfer-Encoding', 'Connection');
    $response->content($body);
    return $response;
}

# The chunks of a body, and whether the last is there.
sub _joined {
    my ($body) = @_;
    my ($at, $joined) = (0, '');
    while (substr($body, $at) =~ /\A([0-9a-fA-F]+)[^\r\n]*\r\n/) {
        my $begin = $at + $+[0];
        my $size  = hex $1;
        return ($joined, scalar(substr($body, $begin) =~ /\A(?:[^\r\n]+\r\n)*\r\n/)) if !$size;
        $joined .= substr $body, $begin, $size;
        last if length $body < $begin + $size + 2;
        $at = $begin + $size + 2;
    }
    return ($joined, 0);
}

# The server starts its workers itself; the one that it starts here passes on what it says to this process and back.
sub _start {
    my ($application) = @_;
    require Parkade::Worker;
    my $folder = File::Temp->newdir;
    my $path   = "$folder/worker";
    socket my $meeting, PF_UNIX, SOCK_STREAM, 0 or die "cannot make a socket: $!\n";
    bind $meeting, pack_sockaddr_un($path) or die "cannot bind $path: $!\n";
    listen $meeting, SOMAXCONN;
    my $port = _free_port();
    my $pid  = fork // die "cannot fork: $!\n";
    _become_server($path, $folder, $port) if !$pid;
    my $started = { owner => $$, pid => $pid, port => $port, folder => $folder };
    bless $started, 'Plack::Test::Parkade::Server';
    _expect($meeting, $started);
    accept my $socket, $meeting or die "cannot accept: $!\n";
    my $link = $started->{link} = Parkade::Link->new($socket, $socket, Parkade::Session->new);
    $link->greet or die "Parkade has ended the link\n";
    $link->begin($application);
    return $started;
}

sub _expect {
    my ($meeting, $started) = @_;
    vec(my $wanted = '', fileno $meeting, 1) = 1;
    while (select(my $set = $wanted, undef, undef, GLANCE) <= 0) {
        local $?;
        next if waitpid($started->{pid}, POSIX::WNOHANG) == 0;
        open my $log, '<', "$started->{folder}/log";
        die 'Parkade has not started: ', $log ? <$log> : "\n";
    }
    return;
}

sub _free_port {
    socket my $socket, PF_INET, SOCK_STREAM, 0 or die "cannot make a socket: $!\n";
    bind $socket, pack_sockaddr_in(0, inet_aton('127.0.0.1')) or die "cannot bind: $!\n";
    return (unpack_sockaddr_in(getsockname $socket))[0];
}

sub _become_server {
    my ($path, $folder, $port) = @_;
    Parkade::Process::die_with_the_core();    # here: with the test
    my $modules = Cwd::abs_path(File::Basename::dirname(__FILE__) . '/../..');
    delete @ENV{ grep { /\APARKADE_/ } keys %ENV };
    @ENV{ MEETING, 'PERL5LIB' } = ($path, join ':', $modules, $ENV{PERL5LIB} // ());
    my @worker = ($^X, '-MPlack::Test::Parkade', '-e', 'Plack::Test::Parkade::pass_on');
    chdir $folder or _give_up("cannot change to $folder: $!");    # no parkade.toml is meant for this
    open STDIN,  '<',  '/dev/null';
    open STDERR, '>',  "$folder/log";
    open STDOUT, '>&', \*STDERR;
    no warnings 'exec';
    exec 'parkade', 'serve', 'Plack::Test', '--worker', "@worker", '--bind', "127.0.0.1:$port", '--workers', 1, '--job-workers', 1
      or _give_up("cannot run parkade, which has to be in PATH: $!");
}

# Without the END blocks of the test.
sub _give_up {
    my ($why) = @_;
    print STDERR "$why\n";
    POSIX::_exit(1);
}

# What the server takes for its worker.
sub pass_on {
    $SIG{$_} = 'IGNORE' for qw(INT TERM HUP USR1 PIPE);
    socket my $test, PF_UNIX, SOCK_STREAM, 0 or die "cannot make a socket: $!\n";
    connect $test, pack_sockaddr_un($ENV{ +MEETING }) or die "the test has ended: $!\n";
    my @ways = ([\*STDIN, $test], [$test, \*STDOUT]);
    while (1) {
        my $set = '';
        vec($set, fileno $_->[0], 1) = 1 for @ways;
        next if select($set, undef, undef, undef) <= 0;
        for my $way (grep { vec $set, fileno $_->[0], 1 } @ways) {
            my ($from, $to) = @$way;
            return if !sysread $from, my $data, RECEIVE_SIZE;
            while (length $data) {
                my $written = syswrite $to, $data or return;
                substr $data, 0, $written, '';
            }
        }
    }
}

package Plack::Test::Parkade::Server;

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $!);
    kill KILL => $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

END { $server = undef }

1;

__END__

=encoding UTF-8

=head1 NAME

Plack::Test::Parkade - tests of applications, through the real server

=head1 SYNOPSIS

    PLACK_TEST_IMPL=Parkade prove -l t

=head1 DESCRIPTION

What L<Plack::Test> tests goes through C<parkade>, which has to be in C<PATH>: it parses the requests and writes the
responses. The application still runs in the process of its test, which serves the link meanwhile; so a test may look at what
the application has changed.

There is one server for each process, started at the first request.

=head1 METHODS

=head2 new($application), request($request)

What L<Plack::Test> calls.

=head2 pass_on

The program that the server starts as its worker.

=cut
