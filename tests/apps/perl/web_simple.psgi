package Hola;
use Web::Simple;

sub dispatch_request {
    'GET + /hola/*' => sub {
        my ($self, $name) = @_;
        return [200, ['Content-type', 'text/plain'], ["hola $name"]];
    },
}

Hola->to_psgi_app;
