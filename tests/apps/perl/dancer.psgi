use Dancer;

set logger => 'null';
get '/hola/:name' => sub { return 'hola ' . param('name') };

dance;
