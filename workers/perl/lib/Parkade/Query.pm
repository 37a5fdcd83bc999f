package Parkade::Query;

use strict;
use warnings;

use Carp            ();
use JSON::PP        ();
use Parkade::Checks ();

use parent 'Parkade::Wait';

our @CARP_NOT = qw(Parkade Parkade::Wait);

my $json = JSON::PP->new->canonical->allow_blessed->convert_blessed;

sub new {
    my ($class, $sql, @bind) = @_;
    Carp::croak('the statement of a query is missing') if !defined $sql || $sql !~ /\S/;
    my $self = $class->SUPER::new(query => "$sql", [map { _parameter($_) } @bind], {});
    return $self;
}

# A hash is a JSON document.
sub _parameter {
    my ($value) = @_;
    return { json => $json->encode($value) } if ref $value eq 'HASH';
    return [map { _parameter($_) } @$value]  if ref $value eq 'ARRAY';
    return $value;
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
a string as text; C<undef> is null, C<\1> and C<\0> are booleans. An array is an array of the database, and a hash a JSON document.

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
