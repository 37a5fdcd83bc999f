use Mojolicious::Lite -signatures;

get '/hola/:name' => sub ($c) { $c->render(text => 'hola ' . $c->param('name')) };

app->secrets(['a test'])->log->level('warn');
app->start;
