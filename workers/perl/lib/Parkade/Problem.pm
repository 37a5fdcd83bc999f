package Parkade::Problem;

use strict;
use warnings;

use JSON::PP             ();
use Parkade::MessagePack qw(bin);

use constant {
    PROBLEM => 'application/problem+json',
    HTML    => 'text/html; charset=utf-8',
    TEXT    => 'text/plain; charset=utf-8',
};

my %PHRASES = (
    400 => 'Bad Request', 404 => 'Not Found', 409 => 'Conflict', 410 => 'Gone', 413 => 'Content Too Large', 426 => 'Upgrade Required',
    500 => 'Internal Server Error', 502 => 'Bad Gateway', 503 => 'Service Unavailable', 504 => 'Gateway Timeout', 507 => 'Insufficient Storage',
);

# How precisely media ranges name each form. If a client likes two of them equally, it gets the first.
my @FORMS = (
    [PROBLEM, { PROBLEM() => 2, 'application/json' => 2, 'application/*' => 1, '*/*' => 0 }],
    [HTML,    { 'text/html' => 2, '*/*' => 0 }],
    [TEXT,    { 'text/plain' => 2, 'text/*' => 1, '*/*' => 0 }],
);

my $json = JSON::PP->new->utf8->allow_nonref;

# As the core writes it: problem details for programs, a page for browsers, text for those who ask for text.
sub response {
    my ($request, $status, %told) = @_;
    my $form = preferred(!$request ? '' : ref $request eq 'HASH' ? $request->{HTTP_ACCEPT} // '' : $request->header('accept') // '');
    my $phrase = $PHRASES{$status} // '';
    my $body;
    if ($form eq PROBLEM) {
        my @members = (title => $phrase, status => $status + 0, map { defined $told{$_} ? ($_ => $told{$_}) : () } qw(detail fault effect traceback));
        my @pairs;
        push @pairs, join ':', map { $json->encode($_) } splice @members, 0, 2 while @members;
        $body = '{' . join(',', @pairs) . '}';
    }
    else {
        $body = $form eq HTML ? _page($status, $phrase, $told{detail}) : "$status $phrase\n$told{detail}\n" . ($told{traceback} // '');
        utf8::encode($body);
    }
    my @headers = map { bin($_) } $form, 'Accept', $status == 503 ? '1' : (), $status == 426 ? 'websocket' : ();
    my @names   = ('content-type', 'vary', $status == 503 ? 'retry-after' : (), $status == 426 ? 'upgrade' : ());
    return ($status, [map { ($names[$_], $headers[$_]) } 0 .. $#names], $body);
}

# The form with the highest weight; among equals, the one that is named most precisely (RFC 9110, section 12.5.1).
sub preferred {
    my ($accept) = @_;
    my %wanted;
    for my $one (split /,/, lc $accept) {
        my ($media, @parameters) = map { s/\A\s+|\s+\z//gr } split /;/, $one;
        my ($weight) = map { /\Aq\s*=\s*([0-9]{1,3}(?:[.][0-9]*)?)\z/ ? $1 : () } @parameters;
        $weight = 1 if !defined $weight || $weight > 1;
        for my $form (@FORMS) {
            my ($name, $names) = @$form;
            my $precision = $names->{ $media // '' };
            next if !defined $precision;
            my $before = $wanted{$name} || [0, 0];
            $wanted{$name} = [$precision, $weight] if $precision > $before->[0] || $precision == $before->[0] && $weight > $before->[1];
        }
    }
    my ($best, $found) = ([0, -1], PROBLEM);
    for my $name (map { $_->[0] } @FORMS) {
        my ($precision, $weight) = @{ $wanted{$name} || next };
        next if !$weight || !($weight > $best->[0] || $weight == $best->[0] && $precision > $best->[1]);
        ($best, $found) = ([$weight, $precision], $name);
    }
    return $found;
}

sub _page {
    my ($status, $phrase, $detail) = @_;
    my %ESCAPED = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;');
    $detail =~ s/([&<>"])/$ESCAPED{$1}/g;
    return <<"HTML";
<!doctype html>
<html lang=en>
<meta charset=utf-8>
<meta name=viewport content="width=device-width">
<title>$status $phrase</title>
<style>:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 3rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 }
.status { margin: 0; color: light-dark(#57606a, #9198a1) }
.detail::first-letter { text-transform: uppercase }
.what { font-family: ui-monospace, monospace; color: light-dark(#a40e26, #ff8182) }
pre { overflow-x: auto; padding: 1rem; border-radius: .5rem; background: light-dark(#f3f4f6, #1f2328) }</style>
<p class=status>$status</p>
<h1>$phrase</h1>
<p class=detail>$detail</p>
</html>
HTML
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Problem - an error as its client reads it

=head1 FUNCTIONS

=head2 response($request, $status, detail => $text, fault => $whose, effect => $what, traceback => $text)

Status, headers and body, in the form that the request's C<Accept> prefers: problem details (RFC 9457), a page, or text. The same
as the core writes. The request is a L<Parkade::Request> or an environment of PSGI; without one, problem details.

=head2 preferred($accept)

The content type for this C<Accept>.

=cut
