# The same in Web::Simple.
package Hola;
use Web::Simple;

sub dispatch_request {
    'GET + /hola/*' => sub {
        my ($self, $name) = @_;
        return [200, ['Content-Type', 'text/plain'], ["Hola $name"]];
    },
}

Hola->to_psgi_app;
