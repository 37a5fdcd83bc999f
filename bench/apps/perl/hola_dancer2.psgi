# The same in Dancer2.
package Hola;
use Dancer2;

get '/hola/:name' => sub { return 'Hola ' . route_parameters->get('name') };

Hola->to_app;
