# What handlers see of a request: the fields of its query, and its body.

use strict;
use warnings;

use Test::More;
use Parkade::MessagePack qw(encode bin);
use Parkade::PSGI::Input ();
use Parkade::Request     ();

sub head { my ($query) = @_; return encode(['GET', '/', $query, [], '127.0.0.1', 'http', '1.1', 'id']) }

sub request {
    my ($query, %members) = @_;
    return Parkade::Request->new(head => head($query), size => 0, parameters => {}, %members);
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
    next if !Parkade::Compiled::IS_USED || $query =~ /[^\x00-\x7f]/;
    my $in_c = Parkade::Compiled::fields(head($query));
    is(explain($in_c), explain(\%read), "the query $query, in C") or last;
}

if (Parkade::Compiled::IS_USED) {
    my $head = head('a=%c3%a9&b');
    ok(Parkade::Compiled::fields($head), 'a usual head');
    ok(!defined Parkade::Compiled::fields(substr $head, 0, $_), "a head that is cut after $_ bytes") for 0 .. index $head, 'b';
    ok(!defined Parkade::Compiled::fields($_), 'no head') for undef, '', encode([]), encode([1 .. 8]), encode('text'), "\x{263a}";
    ok(!defined Parkade::Compiled::fields(head("\xe9=1")), 'a query that is not ASCII');
    is(scalar keys %{ Parkade::Compiled::fields(head(join '&', 1 .. 1_000)) }, 1_000, 'as many fields as there may be');
    ok(!defined Parkade::Compiled::fields(head(join '&', 1 .. 1_001)), 'one more');
}
eval { request(join '&', 1 .. 1_001)->param('a') };
is($@->{status}, 400, 'more fields than there may be');

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
