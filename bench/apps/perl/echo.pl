# The article's delayed echo without an event loop, and the same for a minute.
use strict;
use warnings;
use Parkade;

get '/'      => sub { return after 2,  'You said: ' . param('field') };
get '/later' => sub { return after 60, 'You said: ' . param('field') };
