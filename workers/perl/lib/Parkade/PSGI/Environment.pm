package Parkade::PSGI::Environment;

use strict;
use warnings;

use Parkade::Wire ();

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

my @PROTOCOLS = ({ '1.1' => 'HTTP/1.1', '1.0' => 'HTTP/1.0', 2 => 'HTTP/2.0' });
my %PROTOCOL = %{ $PROTOCOLS[0] };

sub of_head {
    my ($written) = @_;
    my $head = Parkade::Wire::read_head($written);
    my ($method, $path, $query, $fields, $client, $scheme, $version, $id) = @$head;
    utf8::encode($_) for $path, $query;
    my %env;
    for (my $at = 0; $at < @$fields; $at += 2) {
        my $name = $fields->[$at];
        my $key  = $KEYS{$name} // _key($name);
        next if $key eq '';
        if (exists $env{$key}) {
            $env{$key} .= ($key eq 'HTTP_COOKIE' ? '; ' : ', ') . $fields->[$at + 1];
        }
        else {
            $env{$key} = $fields->[$at + 1];
        }
    }
    my ($name, $port) = server_of($env{HTTP_HOST}, $scheme);
    my $decoded = $path;
    $decoded =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge if $decoded =~ /%/;
    $env{REQUEST_METHOD}  = $method;
    $env{SCRIPT_NAME}     = '';
    $env{PATH_INFO}       = $decoded;
    $env{REQUEST_URI}     = length $query ? "$path?$query" : $path;
    $env{QUERY_STRING}    = $query;
    $env{SERVER_NAME}     = $name;
    $env{SERVER_PORT}     = $port;
    $env{SERVER_PROTOCOL} = $PROTOCOL{$version} // "HTTP/$version";
    $env{REMOTE_ADDR}     = $client;
    $env{'psgi.url_scheme'}    = $scheme;
    $env{'parkade.request_id'} = $id // '';
    return \%env;
}

# Until the core tells the address of its socket, the server is what the client calls it.
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

The name and the port of the server, from the field C<Host>.

=cut
