# The same echo without a callback: a handler returns what its response waits for, and its worker is free at once.

use strict;
use warnings;

use Parkade;

my $form = <<'HTML';
<!doctype html>
<title>Delayed echo</title>
<form>
  <input name="field">
  <button>Echo</button>
</form>
<hr>
HTML

my %entities = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;');

get '/' => sub {
    my $field = param('field');
    return html($form) if !defined $field || $field eq '';
    $field =~ s/([&<>"])/$entities{$1}/g;
    return after 2, html("$form<p>You said: $field</p>\n");
};
