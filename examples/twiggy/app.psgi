# A delayed echo for Twiggy. Nothing in it is for Parkade: Twiggy runs it as it is (`twiggy --listen :8000 app.psgi`).
# It does not even load AnyEvent, because Twiggy has done so.

use strict;
use warnings;

use Plack::Request;

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

my $app = sub {
    my ($env) = @_;
    my $field = Plack::Request->new($env)->param('field');
    return page($form) if !defined $field || $field eq '';
    return sub {
        my ($respond) = @_;
        my $timer;
        $timer = AnyEvent->timer(
            after => 2,
            cb    => sub {
                undef $timer;
                $field =~ s/([&<>"])/$entities{$1}/g;
                $respond->(page("$form<p>You said: $field</p>\n"));
            }
        );
    };
};

sub page {
    my ($html) = @_;
    return [200, ['Content-Type' => 'text/html; charset=utf-8'], [$html]];
}

$app;
