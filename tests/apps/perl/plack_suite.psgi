# The applications of Plack::Test::Suite; the field X-Plack-Test of a request names one.
use Plack::Test::Suite;
Plack::Test::Suite->test_app_handler;
