package Parkade::PSGI::Environment;

use strict;
use warnings;

use Parkade::Compiled ();
use Parkade::Wire     ();

# A client chooses the names of its fields. Then: the key of a field is made anew each time.
use constant KEYS_MAX => 1_000;

# The body is whole when it gets here. `Proxy` would become HTTP_PROXY, which libraries take for a setting, and a field
# with an underscore would pass for another.
my %LEFT_OUT = map { ($_ => 1) } qw(transfer-encoding proxy);
my %KEYS = ('content-type' => 'CONTENT_TYPE', 'content-length' => 'CONTENT_LENGTH');

sub _key {
    my ($name) = @_;
    my $key = $LEFT_OUT{$name} || $name =~ /_/ ? '' : 'HTTP_' . (uc $name =~ tr/-/_/r);
    $KEYS{$name} = $key if keys %KEYS < KEYS_MAX;
    return $key;
}

my %PROTOCOL = ('1.1' => 'HTTP/1.1', '1.0' => 'HTTP/1.0', 2 => 'HTTP/2.0');

sub of_head {
    my ($written) = @_;
    return Parkade::Compiled::IS_USED && Parkade::Compiled::environment($written) || _in_perl($written);
}

# A third of a worker's own time goes here, so the short forms of MessagePack, which almost all fields have, are read in
# place; the first other form leaves the whole head to the general reader.
sub _in_perl {
    my ($written) = @_;
    no warnings qw(substr uninitialized);    # a head that is cut is refused below
    my ($tag, $at, $size, $name, $key, $value);
    my $elements = (ord $written) - 0x90;
    return _slowly($written) if $elements != 8 && $elements != 11;
    my @start;
    $at = 1;
    for (1 .. 3) {
        $tag = ord substr $written, $at, 1;
        if    (($tag & 0xe0) == 0xa0) { push @start, substr $written, $at + 1, $tag & 0x1f; $at += 1 + ($tag & 0x1f) }
        elsif ($tag == 0xd9) {
            $size = ord substr $written, $at + 1, 1;
            push @start, substr $written, $at + 2, $size;
            $at += 2 + $size;
        }
        else { return _slowly($written) }
    }
    my $count = (ord substr $written, $at, 1) - 0x90;
    if ($count >= 0 && $count < 16) { $at++ }
    elsif ($count == 0xdc - 0x90)   { $count = unpack 'n', substr $written, $at + 1, 2; $at += 3 }
    else                            { return _slowly($written) }
    my %env;
    for (1 .. $count >> 1) {
        $tag = ord substr $written, $at, 1;
        return _slowly($written) if ($tag & 0xe0) != 0xa0;
        $name = substr $written, $at + 1, $tag & 0x1f;
        $at += 1 + ($tag & 0x1f);
        return _slowly($written) if substr($written, $at, 1) ne "\xc4";
        $size = ord substr $written, $at + 1, 1;
        $value = substr $written, $at + 2, $size;
        $at += 2 + $size;
        $key = $KEYS{$name} // _key($name);
        next if $key eq '';
        $env{$key} = exists $env{$key} ? $env{$key} . ($key eq 'HTTP_COOKIE' ? '; ' : ', ') . $value : $value;
    }
    my @end;
    for (5 .. $elements) {
        $tag = ord substr $written, $at, 1;
        if    (($tag & 0xe0) == 0xa0) { push @end, substr $written, $at + 1, $tag & 0x1f; $at += 1 + ($tag & 0x1f) }
        elsif ($tag == 0xcd) { push @end, unpack 'n', substr $written, $at + 1, 2; $at += 3 }
        elsif ($tag == 0xd9) {
            $size = ord substr $written, $at + 1, 1;
            push @end, substr $written, $at + 2, $size;
            $at += 2 + $size;
        }
        elsif ($tag < 0x80) { push @end, $tag; $at++ }
        else                { return _slowly($written) }
    }
    return _slowly($written) if $at != length $written;
    return _completed(\%env, @start, @end);
}

sub _slowly {
    my ($written) = @_;
    my $head = Parkade::Wire::read_head($written);
    my ($method, $path, $query, $fields, @end) = @$head;
    utf8::encode($_) for $path, $query;
    my %env;
    for (my $at = 0; $at < @$fields; $at += 2) {
        my ($name, $value) = @$fields[$at, $at + 1];
        my $key = $KEYS{$name} // _key($name);
        next if $key eq '';
        $env{$key} = exists $env{$key} ? $env{$key} . ($key eq 'HTTP_COOKIE' ? '; ' : ', ') . $value : $value;
    }
    return _completed(\%env, $method, $path, $query, @end);
}

sub _completed {
    my ($env, $method, $path, $query, $client, $scheme, $version, $id, $client_port, @server) = @_;
    @$env{qw(SERVER_NAME SERVER_PORT)} = $server[1] ? @server : server_of($env->{HTTP_HOST}, $scheme);
    $env->{REMOTE_PORT}          = $client_port if $client_port;
    my $decoded = $path;
    $decoded =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge if index($path, '%') >= 0;
    $env->{REQUEST_METHOD}       = $method;
    $env->{SCRIPT_NAME}          = '';
    $env->{PATH_INFO}            = $decoded;
    $env->{REQUEST_URI}          = length $query ? "$path?$query" : $path;
    $env->{QUERY_STRING}         = $query;
    $env->{SERVER_PROTOCOL}      = $PROTOCOL{$version} // "HTTP/$version";
    $env->{REMOTE_ADDR}          = $client;
    $env->{'psgi.url_scheme'}    = $scheme;
    $env->{'parkade.request_id'} = $id // '';
    return $env;
}

# At a Unix socket, the server is what the client calls it.
sub server_of {
    my ($host, $scheme) = @_;
    my ($name, $port) = ($host // '') =~ /\A(.*?)(?::([0-9]+))?\z/s;
    $name = 'localhost' if !length $name;
    return ($name, $port || ($scheme eq 'https' ? 443 : 80));
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::PSGI::Environment - the part of the PSGI environment that the head of a request tells

=head1 FUNCTIONS

=head2 of_head($bytes)

A new environment, from the head of a C<REQUEST>. C<PATH_INFO> is decoded to bytes; C<REQUEST_URI> is as it was sent. Fields
that occur several times are joined with a comma, cookies with a semicolon.

=head2 server_of($host, $scheme)

The name and the port of the server, from the field C<Host>: for a connection to a Unix socket.

=cut
