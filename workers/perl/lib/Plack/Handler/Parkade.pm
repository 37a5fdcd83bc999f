package Plack::Handler::Parkade;

use strict;
use warnings;

use Cwd            ();
use File::Basename ();
use JSON::PP       ();
use POSIX          ();

# What a worker is told by the program that became its core: JSON. No name that begins with PARKADE_, which would be a
# setting.
use constant PROGRAM => 'PLACK_PARKADE';

# Where systemd passes sockets, and so what Parkade takes: from this descriptor on.
use constant FIRST_SOCKET => 3;

# What other servers (plackup's own, Starman, Twiggy, Feersum, Starlet, Gazelle, Monoceros) call what Parkade has, too: its
# name here, and the unit that theirs have in mind. Of several names of one setting, the first one counts.
my @RENAMED = (
    [workers                 => 'workers'],
    [max_workers             => 'workers'],
    [pre_fork                => 'workers'],
    [max_servers             => 'workers'],
    [max_requests            => 'max-requests'],
    [max_reqs_per_child      => 'max-requests'],
    [max_requests_per_worker => 'max-requests'],
    [max_connections         => 'connections-limit'],
    [max_body_len            => 'body-limit'],
    [graceful_timeout        => 'grace', 's'],
);

# What other servers tune and Parkade has no need of, or does by itself.
my %LEFT_OUT = map { ($_ => 1) } qw(
    accept_priority backlog epoll_exclusive err_respawn_interval header_read_timeout header_timeout hot_restart ipv6 keepalive
    keepalive_timeout main_process_delay max_accept_per_loop max_connection_reqs max_keepalive_connection max_keepalive_reqs
    max_keepalive_requests max_read_buf max_readahead_reqs max_spare_servers min_reqs_per_child min_servers min_spare_servers
    no_delay on_disconnect preload_app proctitle quiet read_chunk_size read_priority read_timeout reuseport sendfile server_ready
    server_software spawn_interval startup_timeout threads timeout verbose write_priority write_timeout
);

my $NO_TLS = 'it does no TLS: have a proxy do it, for instance nginx, and tell Parkade with --trust where that runs';

# Leaving these out would be a surprise.
my %REFUSED = (
    daemonize      => 'it stays in the foreground: have it started by a service manager, for instance systemd',
    user           => 'it does not change its user: have it started as that user',
    group          => 'it does not change its group: have it started with that group',
    listen_sock    => 'it opens its sockets itself, or takes those of systemd',
    child_exit     => 'its workers run END blocks: put the code into one',
    after_fork     => 'its workers load the application themselves: put the code there',
    before_fork    => 'its workers load the application themselves: put the code there',
    proxy_protocol => 'it does not speak the PROXY protocol: have the proxy set X-Forwarded-For, and tell with --trust where it runs',
    reverse_proxy  => 'it trusts proxies by their address: tell with --trust where the proxy runs',
    (map { ($_ => $NO_TLS) } qw(ssl ssl_cert ssl_key ssl_cert_file ssl_key_file tls tls_cert_file tls_key_file)),
);

my $is_worker;
my $loaded;

sub new {
    my ($class, %options) = @_;
    my $self = bless { options => \%options }, $class;
    # With --reload, Plack would watch the files and start another server after each change.
    $self->run if !$is_worker && _is_reloading(@main::ARGV);
    return $self;
}

sub run {
    my ($self, $application) = @_;
    return $loaded = $application if $is_worker;
    my @command = $self->command($0, @main::ARGV);
    my ($name) = @command;
    exec { $name } @command or die "cannot run $name: $!; name the program with --parkade FILE\n";
}

# The command line of the server, whose workers run the program that has called: the same that is now in this process.
sub command {
    my ($self, $program, @arguments) = @_;
    my %options = %{ $self->{options} };
    my $script  = Cwd::abs_path($program);
    die "Parkade runs the program that called it once for each worker, but $program is not a file\n"
      if !defined $script || !-f $script;
    my ($parkade, $pid, $pid_file, $log) = delete @options{qw(parkade pid pid_file error_log)};
    $pid //= $pid_file;
    my @listening = _addresses(\%options);
    @listening = () if _take_sockets();
    my @flags     = _flags(\%options);
    _write_pid($pid) if defined $pid;
    if (defined $log) { open STDERR, '>>', $log or die "cannot write $log: $!\n" }
    _tell_workers($script, @arguments);
    my $is_dev = _is_reloading(@arguments);
    my @watched = $is_dev ? map { ('--watch', $_) } _watched(@arguments) : ();
    my $worker  = join ' ', $^X, '-MPlack::Handler::Parkade', '-e', 'Plack::Handler::Parkade::work';
    return ($parkade // 'parkade', $is_dev ? 'dev' : 'serve', _target($script, @arguments), '--worker', $worker, @listening,
        @watched, @flags);
}

sub _flags {
    my ($options) = @_;
    my %options = %$options;
    my @flags;
    for (@RENAMED) {
        my ($name, $flag, $unit) = @$_;
        my $value = delete $options{$name};
        # Elsewhere, 0 is no limit.
        next if !$value || grep { $_ eq "--$flag" } @flags;
        push @flags, "--$flag", $unit && $value =~ /\A[0-9.]+\z/ ? "$value$unit" : $value;
    }
    for my $name (sort keys %options) {
        my $value = $options{$name};
        (my $flag = "--$name") =~ tr/_/-/;
        my $why = $name =~ /\Anet_server_/ ? 'it is not built on Net::Server' : $REFUSED{$name};
        # An option that is last has no value; --disable-NAME has a false one.
        die "Parkade has no $flag: $why\n" if $why && ($value // 1);
        next if $why;
        if ($LEFT_OUT{$name}) {
            print STDERR "Parkade has no use for $flag\n" if !ref $value;
            next;
        }
        push @flags, $flag, $value if defined $value;
    }
    return @flags;
}

sub _addresses {
    my ($options) = @_;
    my ($host, $port, $listen, $socket) = delete @$options{qw(host port listen socket)};
    my @listen = ref $listen ? @$listen : defined $listen ? $listen : ();
    @listen = defined $socket ? $socket : ($host // '') . ':' . ($port || 5000) if !@listen;
    die "Parkade cannot listen with :ssl: $NO_TLS\n" if grep { /:ssl\z/ } @listen;
    s{\A0:}{0.0.0.0:} for @listen;
    return map { ('--bind', m{:[0-9]+\z} ? $_ : "unix:$_") } @listen;
}

# Those of start_server (Server::Starter), which opens them itself and names them in the environment: `8000=4;/tmp/s=5`.
# Whether there are any.
sub _take_sockets {
    my @sockets = map { /=([0-9]+)\z/ ? $1 : () } split /;/, delete $ENV{SERVER_STARTER_PORT} // '';
    return if !@sockets;
    # Above the places where they go, so that none of them is overwritten.
    my @aside;
    while (@aside < @sockets) {
        my $copy = POSIX::dup($sockets[@aside]) // die "cannot take the socket $sockets[@aside] of start_server: $!\n";
        push @aside, $copy if $copy >= FIRST_SOCKET + @sockets;
    }
    POSIX::dup2($aside[$_], FIRST_SOCKET + $_) // die "cannot take a socket of start_server: $!\n" for 0 .. $#aside;
    POSIX::close($_) for @aside;
    @ENV{qw(LISTEN_PID LISTEN_FDS)} = ($$, scalar @sockets);
    return 1;
}

sub _write_pid {
    my ($file) = @_;
    open my $handle, '>', $file or die "cannot write $file: $!\n";
    local ($\, $,);
    print {$handle} "$$\n";
    close $handle or die "cannot write $file: $!\n";
    return;
}

sub _tell_workers {
    my ($script, @arguments) = @_;
    my $modules = Cwd::abs_path(File::Basename::dirname(__FILE__) . '/../..');
    my %told = (
        script    => $script,
        arguments => [_without_reloading(@arguments)],
        modules   => [grep { !ref } @INC],
        perl5lib  => $ENV{PERL5LIB},
    );
    $ENV{ +PROGRAM } = JSON::PP->new->latin1->encode(\%told);
    $ENV{PERL5LIB} = join ':', $modules, $ENV{PERL5LIB} // ();
    return;
}

# What people see of it, and where `parkade dev` looks for changes.
sub _target {
    my ($script, @arguments) = @_;
    return $script if $script !~ m{/plackup\z};
    require Plack::Runner;
    my $runner = Plack::Runner->new;
    $runner->parse_options(@arguments);
    return $runner->{app} // $runner->{argv}[0] // 'app.psgi';
}

sub _is_reloading { return grep { /\A(?:-r|--reload|-R|--Reload)(?:=|\z)/ } @_ }

sub _watched {
    my (@arguments) = @_;
    my ($told) = _reloading(@arguments);
    return map { Cwd::abs_path($_) // $_ } map { split /,/ } @$told;
}

sub _without_reloading {
    my (@arguments) = @_;
    my (undef, $others) = _reloading(@arguments);
    return @$others;
}

# The folders after -R, and the other arguments.
sub _reloading {
    my (@arguments) = @_;
    my (@watched, @others);
    while (defined(my $argument = shift @arguments)) {
        if    ($argument =~ /\A(?:-r|--reload)\z/)         { next }
        elsif ($argument =~ /\A(?:-R|--Reload)=(.*)\z/s)   { push @watched, $1 }
        elsif ($argument =~ /\A(?:-R|--Reload)\z/)         { push @watched, shift(@arguments) // () }
        elsif ($argument =~ /\A(?:-L|--loader)=/)          { next }
        elsif ($argument =~ /\A(?:-L|--loader)\z/)         { shift @arguments }
        else                                               { push @others, $argument }
    }
    return (\@watched, \@others);
}

# A worker: runs the program again, up to the point where it hands its application to a server.
sub work {
    my $told = JSON::PP->new->latin1->decode(delete $ENV{ +PROGRAM } // '{}');
    if (defined $told->{perl5lib}) { $ENV{PERL5LIB} = $told->{perl5lib} }
    else                           { delete $ENV{PERL5LIB} }
    @INC = @{ $told->{modules} || [@INC] };
    $is_worker = 1;
    require Parkade::Worker;
    return Parkade::Worker::end(Parkade::Worker::work(sub { _load($told, @_) }));
}

sub _load {
    my ($told, $info) = @_;
    my $script = $told->{script} // die "this program is started by plackup -s Parkade\n";
    @ARGV = @{ $told->{arguments} };    # also for code that looks at them later
    Parkade::Loader::run_file($script);
    die "$script did not pass an application to Parkade\n" if !$loaded;
    return Parkade::PSGI->new($loaded, Parkade::Worker::settings($info));
}

1;

__END__

=encoding UTF-8

=head1 NAME

Plack::Handler::Parkade - plackup -s Parkade

=head1 SYNOPSIS

    plackup -s Parkade -E deployment --listen :8080 --workers 4 --max-requests 1000 app.psgi

=head1 DESCRIPTION

The program C<parkade> takes the place of C<plackup>, with the same process id. Each of its workers runs C<plackup> again with
the same options, until the application is loaded: C<-e>, C<-I>, C<-M>, C<--path>, C<--access-log> and the
middleware of C<-E development> work as with any other server, and SIGHUP loads all of it anew. Programs that have a
C<Plack::Runner> of their own are run again likewise.

C<parkade> is looked for in C<PATH>.

=head1 OPTIONS

=over

=item --host, --port, --listen, --socket

Where it listens; by default C<:5000>. With C<start_server> (L<Server::Starter>), at its sockets instead:

    start_server --port 8080 -- plackup -s Parkade app.psgi

=item --workers, --max-workers, --pre-fork, --max-servers

The number of workers. Without it, one for each core.

=item --max-requests, --max-reqs-per-child, --max-requests-per-worker

A worker is replaced after that many requests.

=item --max-connections, --max-body-len, --graceful-timeout

Parkade's settings C<--connections-limit>, C<--body-limit> (in bytes) and C<--grace> (in seconds).

=item -r, --reload, -R FOLDERS

C<parkade dev>: it loads the application anew when a file changes.

=item --pid FILE, --pid-file FILE

Its process id is written there.

=item --error-log FILE

The log is appended to that file: what Parkade logs, and what the application prints. Without it, the log is the standard error.

=item --parkade FILE

The program, if it is not in C<PATH>.

=back

Every other option is one of Parkade's own settings: C<--deadline 10s> and C<--grace 5s>, for instance.

=head2 Options of other servers that are ignored

With a line that says so, because Parkade has no need of what they tune, or does it by itself:

=over

=item of plackup's own server

C<--timeout>, C<--ipv6>

=item of Starman

C<--backlog>, C<--preload-app>, C<--disable-keepalive>, C<--keepalive-timeout>, C<--max-keepalive-requests>, C<--read-timeout>,
C<--disable-proctitle>, C<--min-servers>, C<--min-spare-servers>, C<--max-spare-servers>

=item of Twiggy

C<--backlog>, C<--timeout>, C<--no-delay>, C<--read-chunk-size>

=item of Feersum

C<--preload-app>, C<--hot-restart> (SIGHUP always loads the code anew), C<--reuseport>, C<--epoll-exclusive>, C<--keepalive>,
C<--read-timeout>, C<--header-timeout>, C<--write-timeout>, C<--startup-timeout>, C<--max-connection-reqs>,
C<--max-accept-per-loop>, C<--max-read-buf>, C<--read-priority>, C<--write-priority>, C<--accept-priority>, C<--sendfile>,
C<--quiet>, C<--verbose>

=item of Starlet, Gazelle and Monoceros

C<--timeout>, C<--keepalive-timeout>, C<--max-keepalive-reqs>, C<--max-keepalive-connection>, C<--max-readahead-reqs>,
C<--min-reqs-per-child>, C<--spawn-interval>, C<--err-respawn-interval>, C<--main-process-delay>

=item of Parkade, for Python

C<--threads>, C<--on-disconnect>

=back

=head2 Options that are refused

The error says what to do instead.

=over

=item --daemonize, --user, --group

A service manager does that.

=item --ssl, --enable-ssl, --ssl-cert, --ssl-key, --ssl-cert-file, --ssl-key-file, --listen ADDRESS:PORT:ssl, --tls-...

A proxy does TLS. Tell with C<--trust> where it runs, so that C<psgi.url_scheme> is C<https>.

=item --reverse-proxy, --proxy-protocol

Tell with C<--trust> where the proxy runs, and have it set C<X-Forwarded-For>.

=item --child-exit, --after-fork, --before-fork

Workers load the application themselves, and run its C<END> blocks.

=item --net-server-...

Parkade is not built on Net::Server.

=back

=head1 METHODS

=head2 new(%options), run($application)

What Plack calls. C<run> does not return.

=head2 command($program, @arguments)

The command line of the server.

=head2 work

A worker.

=cut
