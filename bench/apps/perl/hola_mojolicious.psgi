# The same in Mojolicious::Lite.
use Mojolicious::Lite -signatures;

get '/hola/:name' => sub ($c) { $c->render(text => 'Hola ' . $c->param('name')) };

app->secrets(['a benchmark'])->log->level('warn');
app->start;
