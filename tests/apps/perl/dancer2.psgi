package Hola;
use Dancer2;

get '/hola/:name' => sub { return 'hola ' . route_parameters->get('name') };

Hola->to_app;
