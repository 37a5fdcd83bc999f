package Parkade::Request;

use strict;
use warnings;

use Parkade::Checks            ();
use Parkade::Compiled          ();
use Parkade::PSGI::Environment ();

use constant {
    FORM_MAX   => 4_194_304,    # bytes of a form. Then: 413
    FIELDS_MAX => 1_000,        # of a query or a form. Then: 400
};

sub new {
    my $class = shift;
    return bless {@_}, $class;
}

sub env {
    my ($self) = @_;
    return $self->{env} ||= Parkade::PSGI::Environment::of_head($self->{head});
}

sub method { return $_[0]->env->{REQUEST_METHOD} }
sub path   { return $_[0]->env->{PATH_INFO} }
sub id     { return $_[0]->env->{'parkade.request_id'} }

sub header {
    my ($self, $name) = @_;
    (my $key = uc $name) =~ tr/-/_/;
    return $self->env->{ $key =~ /\ACONTENT_(?:TYPE|LENGTH)\z/ ? $key : "HTTP_$key" };
}

sub query_string { return $_[0]->env->{QUERY_STRING} }
sub client       { return $_[0]->env->{REMOTE_ADDR} }
sub scheme       { return $_[0]->env->{'psgi.url_scheme'} }

sub body {
    my ($self) = @_;
    return $self->{body} if defined $self->{body};
    my $input = $self->{input};
    seek $input, 0, 0;
    local $/;
    return readline($input) // '';
}

sub json {
    my ($self) = @_;
    my ($data, $wrong) = Parkade::Checks::from_json($self->body);
    Parkade::Fault->throw(400, "the body is $wrong") if $wrong;
    return $data;
}

sub param {
    my ($self, $name) = @_;
    return $self->{parameters}{$name} if exists $self->{parameters}{$name};
    my $all = ($self->{fields} ||= $self->_fields)->{$name};
    return $all ? $all->[-1] : undef;
}

# A method of its own, because a list in the middle of other arguments is how clients add arguments.
sub params {
    my ($self, $name) = @_;
    my $fields = $self->{fields} ||= $self->_fields;
    return @{ $fields->{$name} || [] };
}

sub _fields {
    my ($self) = @_;
    # Without a body, there is no form to look for, so no environment is made.
    my $read = Parkade::Compiled::IS_USED && !$self->{size} && !$self->{env} && Parkade::Compiled::fields($self->{head});
    return $read if $read;
    my $env  = $self->env;
    my %fields;
    _read($env->{QUERY_STRING}, \%fields);
    if (($env->{CONTENT_TYPE} // '') =~ m{\Aapplication/x-www-form-urlencoded\b}i) {
        Parkade::Fault->throw(413, 'a form has at most 4 MiB') if $self->{size} > FORM_MAX;
        _read($self->body, \%fields);
    }
    return \%fields;
}

sub _read {
    my ($text, $fields) = @_;
    Parkade::Fault->throw(400, 'more than 1,000 fields') if ($text =~ tr/&;//) >= FIELDS_MAX;
    for my $field (split /&/, $text) {
        my ($name, $value) = split /=/, $field, 2;
        next if !defined $name;
        $value //= '';
        if ($field =~ tr/a-zA-Z0-9_.~=-//c) {
            for my $part ($name, $value) {
                $part =~ tr/+/ /;
                $part =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
                utf8::decode($part);
            }
        }
        push @{ $fields->{$name} }, $value if length $name;
    }
    return;
}

package Parkade::Fault;

use overload '""' => sub { $_[0]{detail} }, fallback => 1;

sub throw {
    my ($class, $status, $detail) = @_;
    die bless { status => $status, detail => $detail }, $class;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Request - the request that a handler answers

=head1 METHODS

=head2 param($name)

A parameter of the path, or a field of the query or of an urlencoded form, as characters. Of several fields with one name,
the last.

=head2 params($name)

All fields of that name.

=head2 method, path, query_string, client, scheme, id, header($name), env

What the head says; C<client> is the client's address, and C<env> the part of a PSGI environment.

=head2 body, json

The body as bytes, and as data. What is not JSON is answered with 400.

=head2 new(%members)

=head1 FAULTS OF CLIENTS

=head2 Parkade::Fault->throw($status, $detail)

Ends the handler: the client gets this status, and an error that says C<$detail>. Nothing is logged, because the fault is the
client's. C<json>, C<param> and C<params> do the same for a body or a form that cannot be read.

=cut
