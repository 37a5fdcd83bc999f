# What handlers see of a request: the fields of its query, and its body.

use strict;
use warnings;

use Test::More;
use Parkade::MessagePack qw(encode bin);
use Parkade::PSGI::Input ();
use Parkade::Request     ();

sub request {
    my ($query, %members) = @_;
    my $head = encode(['GET', '/', $query, [], '127.0.0.1', 'http', '1.1', 'id']);
    return Parkade::Request->new(head => $head, size => 0, parameters => {}, %members);
}

# The rule, without a shorter way for what need not be decoded.
sub fields {
    my ($query) = @_;
    my %fields;
    for my $field (split /&/, $query) {
        my ($name, $value) = map {
            (my $part = $_) =~ tr/+/ /;
            $part =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
            utf8::decode($part);
            $part;
        } split(/=/, $field, 2), '';
        push @{ $fields{$name} }, $value if defined $name && length $name;
    }
    return \%fields;
}

my @pieces = ('a', 'b', '0', '=', '=', '&', '&', '+', '%', '%41', '%c3%a9', '%e9', '%zz', '%3D', ';', '~', '_-.', "\xc3\xa9", "\xff", ' ', '%00', '/');
for my $query ('', 'a', 'a=', '=', '=a', '&', '&&a=1&', 'a=1&a=2', 'a=b=c', 'a==', '0=0', '0', '%', map { join '', map { $pieces[rand @pieces] } 0 .. rand 12 } 1 .. 2_000) {
    my %read;
    Parkade::Request::_read($query, \%read);
    is_deeply(\%read, fields($query), "the query $query") or last;
}

my $request = request('field=hello&field=you&%66=%c3%a9');
is($request->param('field'), 'you', 'of several fields, the last');
is_deeply([$request->params('field')], ['hello', 'you'], 'all of them');
is($request->param('f'), "\x{e9}", 'characters');

my ($input) = Parkade::PSGI::Input::of_body('text');
for my $with (request('', body => 'text', size => 4), request('', input => $input, size => 4)) {
    is($with->body, 'text', 'a body') for 1 .. 2;
}
is(request('', body => '')->body, '', 'no body');

done_testing;
