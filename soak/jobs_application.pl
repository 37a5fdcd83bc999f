# What jobs_application.py does, in Perl.

use strict;
use warnings;

use Fcntl       ();
use Parkade;
use POSIX       ();
use Time::HiRes ();

my $RAN    = $ENV{RAN} // die "RAN names the file of the jobs that have run\n";
my %ALWAYS = (retries => 1_000_000);    # jobs that were killed are always retried: a soak has no dead jobs

# No other process can come between (O_APPEND).
sub note {
    my ($line) = @_;
    sysopen my $file, $RAN, Fcntl::O_WRONLY | Fcntl::O_APPEND | Fcntl::O_CREAT, 0644 or die "cannot open $RAN: $!\n";
    defined syswrite $file, "$line\n" or die "cannot write $RAN: $!\n";
    return;
}

# Whether the job has not begun before: it leaves an empty file.
sub is_first {
    my ($number) = @_;
    mkdir "$RAN-begun";
    return sysopen my $file, "$RAN-begun/$number", Fcntl::O_WRONLY | Fcntl::O_CREAT | Fcntl::O_EXCL, 0644;
}

job quick => \&note, %ALWAYS;
job slow  => sub { my ($number) = @_; Time::HiRes::sleep(0.005); note($number) }, %ALWAYS;
job bounded => sub { my ($number) = @_; Time::HiRes::sleep(0.002); note($number) }, queue => 'bounded', priority => 10, %ALWAYS;

# Its child is stored when it ends.
job parent => sub { my ($number) = @_; note($number); enqueue quick => "$number child"; return }, %ALWAYS;

job waits => sub { my ($number) = @_; return after(0.01)->then(\&note, $number) }, %ALWAYS;

job fails_once => sub { my ($number) = @_; retry(0.05, 'the first time') if is_first($number); note($number) }, %ALWAYS;

# Kills its worker.
job leaves_once => sub { my ($number) = @_; POSIX::_exit(1) if is_first($number); note($number) }, %ALWAYS;

post '/enqueue/{name}/{number}' => sub {
    my ($name, $number) = @_;
    return enqueue({ delay => $number =~ /7\z/ ? 0.2 : 0 }, $name => $number)->id;
};

1;
