package Parkade::Query;

use strict;
use warnings;

use B               ();
use Carp            ();
use Parkade::Checks ();
use Scalar::Util    qw(blessed);

use parent 'Parkade::Wait';

our @CARP_NOT = qw(Parkade Parkade::Wait);

use constant {
    DEPTH_MAX => 6,        # arrays in one another, in a parameter. Then: it dies
    WHOLE_MAX => 2**53,    # the last number from which on floats leave out whole ones. Then: it stays a float
};

sub new {
    my ($class, $sql, @bind) = @_;
    Carp::croak('the statement of a query is missing') if !defined $sql || $sql !~ /\S/;
    my $self = $class->SUPER::new(query => "$sql", [map { _parameter($_, 0) } @bind], {});
    return $self;
}

# A hash is a JSON document.
sub _parameter {
    my ($value, $depth) = @_;
    my $kind = ref $value;
    return _number($value) if $kind eq '';
    if ($kind eq 'ARRAY') {
        Carp::croak('the arrays of a parameter are nested more than ' . DEPTH_MAX . ' deep') if $depth == DEPTH_MAX;
        return [map { _parameter($_, $depth + 1) } @$value];
    }
    if ($kind eq 'HASH') {
        utf8::decode(my $json = Parkade::Checks::json_of('a hash as a parameter is a JSON document', $value));
        return { json => $json };
    }
    return $value if $kind eq 'SCALAR' || blessed $value && ($value->isa('JSON::PP::Boolean') || $kind =~ /\AParkade::MessagePack::/);
    Carp::croak("a parameter is a number, text, undef, \\1, \\0, an array or a hash, not a reference of the kind $kind");
}

# A whole number that Perl keeps as a float, such as 10 / 2, is an integer: databases tell the two apart, and Perl does not.
# Zero below zero is none.
sub _number {
    my ($value) = @_;
    my $flags = B::svref_2object(\$value)->FLAGS;
    return $value if !($flags & B::SVf_NOK) || $flags & (B::SVf_POK | B::SVf_IOK);
    my $text = sprintf '%.17g', $value;
    return $text =~ /\A-?[1-9][0-9]*\z|\A0\z/ && abs $text <= WHOLE_MAX ? 0 + $text : $value;
}

sub _with {
    my ($self, %options) = @_;
    $self->{wait}[3] = { %{ $self->{wait}[3] }, %options };
    return $self;
}

sub one      { my ($self) = @_; return $self->_with(shape => 'one') }
sub value    { my ($self) = @_; return $self->_with(shape => 'value') }
sub on       { my ($self, $database) = @_; return $self->_with(database => "$database") }

sub deadline {
    my ($self, $seconds) = @_;
    return $self->_with(deadline => Parkade::Checks::seconds('a deadline', $seconds));
}

sub int8 {
    my ($self, $kind) = @_;
    Carp::croak('int8 is number or string') if ($kind // '') !~ /\A(?:number|string)\z/;
    return $self->_with(int8 => "$kind");
}

sub shared {
    my ($self, $key, $ttl) = @_;
    Parkade::Checks::key($key);
    return $self->_with(shared => "$key", defined $ttl ? (ttl => Parkade::Checks::seconds('a ttl', $ttl)) : ());
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Query - SQL that the core runs

=head1 SYNOPSIS

    return query('select name, price from lots where price > $1', 10);
    return query('select count(*) from lots')->value->then(\&page, title => 'Lots');

=head1 DESCRIPTION

A wait, see L<Parkade::Wait>. When the client leaves, the statement is cancelled in the database. Without C<then>, the client
gets the rows as JSON. With it, the function gets them: an array of hashes, one hash, or one value. For a statement without rows,
it gets what was done: C<< { command => 'UPDATE', rows => 3 } >>.

Parameters are written as the database writes them (C<$1> for PostgreSQL, C<?1> for SQLite). A number is sent as a number and
a string as text; C<undef> is null, C<\1> and C<\0> are booleans. An array is an array of the database (at most 6 in one another),
and a hash a JSON document. A whole number is an integer for the database also where Perl keeps it as a float, such as C<10 / 2>.

=head1 METHODS

=head2 new($sql, @bind)

=head2 one, value

One row, or the first column of the only row, instead of an array of rows.

=head2 on($database)

The name of a database of the configuration; C<default> without this.

=head2 deadline($seconds)

How long it may take from now on, including the time in the queue.

=head2 int8($kind)

How 64-bit integers are told: C<number>, or C<string> for clients that would misread the large ones.

=head2 shared($key, $ttl)

Queries that wait with the same key at the same time are executed once. The rows are kept for C<$ttl> seconds. A key has 1 to 200
bytes.

=cut
