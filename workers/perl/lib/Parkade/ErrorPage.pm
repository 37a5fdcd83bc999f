package Parkade::ErrorPage;

use strict;
use warnings;

use Parkade::MessagePack qw(bin);
use Parkade::Problem     ();
use Parkade::Sources     ();

use constant LINES_AROUND => 5;

# The response to an exception, for developers: a page for browsers, and the same stack as problem details or text for others.
sub response {
    my ($trace, $env) = @_;
    my $is_page = $env && Parkade::Problem::preferred($env->{HTTP_ACCEPT} // '') eq Parkade::Problem::HTML;
    if (!$is_page) {
        my %told = (detail => $trace->first, fault => 'application', traceback => _text($trace->whole) . "\n");
        return Parkade::Problem::response($env, 500, %told, detail => _text($told{detail}));
    }
    my $page = _page($trace, $env);
    utf8::encode($page);
    return (500, ['content-type', bin(Parkade::Problem::HTML), 'cache-control', bin('no-store')], $page);
}

# What is not marked as text is mostly UTF-8.
sub _text {
    my ($bytes) = @_;
    utf8::decode($bytes) if !utf8::is_utf8($bytes);
    return $bytes;
}

sub _page {
    my ($trace, $env) = @_;
    my ($title, @more) = split /\n/, _text($trace->text);
    my %shown = (
        title   => _escaped($title // ''),
        more    => @more ? '<pre class="text">' . _escaped(join "\n", @more) . '</pre>' : '',
        request => _escaped(join ' ', map { $_ // '' } @$env{qw(REQUEST_METHOD REQUEST_URI)}),
        frames  => join('', _frames($trace->frames)),
        whole   => _escaped(_text($trace->whole)),
        headers => _table(map { [_header($_), $env->{$_}] } sort grep { /\A(?:HTTP_|CONTENT_)/ } keys %$env),
    );
    return _template() =~ s/\{\{(\w+)\}\}/$shown{$1}/gr;
}

sub _header {
    my ($key) = @_;
    return lc($key =~ s/\AHTTP_//r) =~ tr/_/-/r;
}

sub _escaped {
    my ($text) = @_;
    my %ESCAPED = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;');
    return $text =~ s/([&<>"])/$ESCAPED{$1}/gr;
}

sub _table {
    return join '', map { '<tr><th>' . _escaped($_->[0]) . '<td>' . _escaped(_text($_->[1] // '')) } @_;
}

# The frame of the application that is nearest to the fault is open.
sub _frames {
    my ($frames) = @_;
    my $is_open;
    return map {
        my ($file, $line, $function, $arguments) = @$_{qw(file line function arguments)};
        my $is_own = !Parkade::Sources::is_installed($file);
        my $opened = $is_own && !$is_open++ ? ' open' : '';
        my $place  = _escaped(_text($file) . " line $line");
        my $name   = _escaped(_text($file =~ s{\A.*/}{}sr) . ":$line") . (defined $function ? ' in <b>' . _escaped($function) . '</b>' : '');
        my $number = 0;
        my $told   = _table(map { ['$_[' . $number++ . ']', $_] } @{ $arguments || [] });
        "<details$opened><summary>$name" . ($is_own ? '' : ' (library)') . "</summary><p>$place</p><pre>"
          . join('', _lines($file, $line)) . '</pre>' . (length $told ? "<table>$told</table>" : '') . '</details>';
    } @$frames;
}

sub _lines {
    my ($file, $line) = @_;
    open my $handle, '<', $file or return;    # a string that was evaluated has no file
    my @shown;
    local ($., $/) = (undef, "\n");
    while (my $text = readline $handle) {
        last if $. > $line + LINES_AROUND;
        next if $. < $line - LINES_AROUND;
        chomp $text;
        my $kind = $. == $line ? 'b' : 'i';
        push @shown, sprintf '<%s>%5d %s</%s>', $kind, $., _escaped(_text($text)), $kind;
    }
    return @shown;
}

# As that of Python.
sub _template {
    return <<'HTML';
<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{{title}}</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
h1 { font-size: 1.4rem; line-height: 1.25; overflow-wrap: anywhere } h2 { font-size: 1rem; margin-top: 2rem }
p { margin: .5rem 0; opacity: .75; overflow-wrap: anywhere }
pre { overflow-x: auto; padding: .8rem 0; background: #8882; border-radius: 6px; font-size: .875rem }
pre > * { display: block; min-width: max-content; padding: 0 1rem; font-weight: normal; font-style: normal }
pre b { background: #f003; box-shadow: inset 3px 0 #d33 }
pre.text { padding: .8rem 1rem }
details { margin: .5rem 0; border-top: 1px solid #8884; padding-top: .5rem } summary { cursor: pointer }
table { border-collapse: collapse; font-size: .875rem }
th, td { text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0; overflow-wrap: anywhere }
th { font-weight: normal; opacity: .75; min-width: 8rem } td { font-family: ui-monospace, monospace }
button { font: inherit; padding: .1rem .8rem; margin-left: .8rem; cursor: pointer }
</style>
<h1>{{title}}</h1>{{more}}<p>{{request}}</p>
{{frames}}
<h2>Stack <button id="copy">Copy</button></h2><pre class="text" id="stack">{{whole}}</pre>
<h2>Headers</h2><table>{{headers}}</table>
<script>
document.getElementById("copy").onclick = async (event) => {
  await navigator.clipboard.writeText(document.getElementById("stack").textContent);
  event.target.textContent = "Copied";
};
</script></html>
HTML
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::ErrorPage - what a developer gets for an exception

=head1 FUNCTIONS

=head2 response($trace, $env)

Status, headers and body: a page that shows each frame of a L<Parkade::Trace> with its lines and its arguments, for the request
with this environment; problem details or text for those who do not ask for HTML.

=cut
