# What code prints for a request is a record of the log, and the handles behave like any other.

use strict;
use warnings;

use File::Temp  ();
use JSON::PP    ();
use Test::More;

my $folder = File::Temp->newdir;

# What runs before the code of each case: $running is the stream for which it works.
my $BEFORE = <<'PERL';
use strict; use warnings; no warnings 'once'; use feature 'say'; use Parkade::Log;
our $running = 7; our $file = shift;
open STDOUT, '>&', \*STDERR; $_->autoflush(1) for *STDOUT, *STDERR;
Parkade::Log::begin(); Parkade::Log::of_stream(sub { $running });
# line 1 "app"
PERL

# The lines of the log: "7 text" for a record that code has printed, "7 text…" for one that goes on, with its level if that
# is another, and the text alone for a line that is no record.
sub logged {
    my ($code) = @_;
    pipe my $reader, my $writer or die $!;
    my $pid = fork // die $!;
    if (!$pid) {
        open STDERR, '>&', $writer or die $!;
        $ENV{PARKADE_LOG} = 'm4rk info';
        exec $^X, '-Ilib', '-e', $BEFORE . $code, "$folder/file" or die $!;
    }
    close $writer;
    my @lines;
    for (readline $reader) {
        chomp;
        next if !length;
        if (/\A\x1em4rk(.*)\z/s) {
            my $told = JSON::PP->new->utf8->decode($1);
            my $level = $told->{level} eq 'info' ? '' : "$told->{level} ";
            $_ = $level . ($told->{stream} // '-') . " $told->{message}" . ($told->{unfinished} ? '…' : '');
            utf8::encode($_) if utf8::is_utf8($_);
            s/\xe2\x80\xa6\z/.../ or s/\xc3\xa2\xc2\x80\xc2\xa6\z/.../;
        }
        push @lines, $_;
    }
    waitpid $pid, 0;
    return \@lines;
}

sub content { open my $handle, '<', "$folder/file" or return ''; local $/; return readline $handle }

sub check { my ($what, $code, @expected) = @_; is_deeply(logged($code), \@expected, $what); return }

check 'each line that is printed is a record', 'print STDERR "one\ntwo\n"; print "three\n"', '7 one', '7 two', '7 three';
check 'a line may come in pieces', 'print STDERR "one "; print STDERR "two\n"', '7 one ...', '7 two';
check 'for no request, it is a line', '$running = 0; print STDERR "one\n"; print "two\n"; printf "%s\n", 3; syswrite STDERR, "4\n"; warn "five\n"',
    'one', 'two', '3', '4', 'warn - five';
check 'the request is the one for which code runs now', 'print "one\n"; $running = 9; print "two\n"; $running = 7; print "three\n"', '7 one',
    '9 two', '7 three';
check 'print, printf, say, syswrite, methods',
    'printf STDERR "%s-%d\n", "a", 2; say STDERR "b"; say "c"; syswrite STDERR, "--d\n--", 2, 2; STDERR->print("e\n"); STDERR->printf("%s\n", "f"); STDERR->say("g")',
    '7 a-2', '7 b', '7 c', '7 d', '7 e', '7 f', '7 g';
check 'separators', '{ local ($,, $\) = ("-", "!\n"); print STDERR 1, 2 } { local $/; print STDERR "one\n" } $_ = "kept"; print STDERR; print "\n"',
    '7 1-2!', '7 one', '7 kept...', '7 ';
check 'they return what they do otherwise', 'print join ",", print(STDERR "a\n"), syswrite(STDERR, "abc\n"), say(STDERR "b"), printf(STDERR "c\n"); print "\n"',
    '7 a', '7 abc', '7 b', '7 c', '7 1,4,1,1...', '7 ';
check 'a reference to the handle', 'my $errors = \*STDERR; print {$errors} "one\n"; $errors->print("two\n"); select STDERR; $| = 1; print "three\n"',
    '7 one', '7 two', '7 three';
check 'warnings', 'warn "one"; $SIG{__WARN__} = sub { print STDERR "own: $_[0]" }; warn "two"; $SIG{__WARN__} = "DEFAULT"; warn "three"',
    'warn 7 one at app line 1.', '7 own: two at app line 1.', '7 three at app line 1.';
check 'a last word', 'END { print STDERR "the end\n" } package Late; our $late = bless []; sub DESTROY { print STDERR "destroyed\n" } package main; die "at last\n"',
    '7 at last', '7 the end', 'destroyed';

check 'text in UTF-8', 'print STDERR "caf\xc3\xa9\n"; binmode STDERR, ":utf8"; print STDERR "\x{263a}\x{e9}\n"; binmode STDERR; binmode STDERR, ":encoding(UTF-8)"; print STDERR "\x{263a}\n"',
    "7 caf\xc3\xa9", "7 \xe2\x98\xba\xc3\xa9", "7 \xe2\x98\xba";
check 'warnings of print are those of its caller', 'print STDERR "\x{263a}\n"; print STDERR undef, "x\n"; { no warnings; print STDERR undef, "\x{263a}\n" } $running = 0; print STDERR "\x{263a}\n"',
    'warn 7 Wide character in print at app line 1.', "7 \xe2\x98\xba", 'warn 7 Use of uninitialized value in print at app line 1.', '7 x',
    "7 \xe2\x98\xba", 'warn - Wide character in print at app line 1.', "\xe2\x98\xba";
check 'bytes that are no text', 'print STDERR "a\xff\"\\\\\t\e\r\n"; print STDERR "\xed\xa0\x80\n"', "7 a\xef\xbf\xbd\"\\\t\e", "7 \xef\xbf\xbd";
check 'a record cannot be forged', 'print STDERR qq(\x1em4rk{"level":"error","message":"forged"}\n)', qq(7 \x1em4rk{"level":"error","message":"forged"});
is(scalar @{ logged('print STDERR "x" x 20_000, "\n"') }, 3, 'a long line has several records');
check 'what a program has in UTF-8', 'warn "caf\xc3\xa9\n"', "warn 7 caf\xc3\xa9";

check 'descriptors stay', 'print STDERR join(",", fileno(STDOUT), fileno(STDERR), STDERR->fileno, STDERR->opened ? "open" : "closed"), "\n"', '7 1,2,2,open';
check 'what was found out about a file stays', '-d "/"; print STDERR "x\n"; print -d _ ? "kept\n" : "lost\n"', '7 x', '7 kept';
check 'errors stay', '$! = 2; $@ = "kept"; print STDERR "x\n"; print $! + 0, $@, "\n"', '7 x', '7 2kept';
check 'programs', 'system "echo one; echo two >&2"; print `echo three; echo four >&2`; if (!fork) { exec "echo five >&2" } wait', 'one', 'two', 'four',
    '7 three', 'five';
check 'a child of its own', 'if (!fork) { print STDERR "child\n"; exit } wait; print "parent\n"', '7 child', '7 parent';
check 'a duplicate is a handle of its own', 'open my $copy, ">&", \*STDERR or die $!; $copy->autoflush(1); print {$copy} "one\n"; open my $same, ">&=", 2; $same->autoflush(1); print {$same} "two\n"; close $copy; print "three\n"',
    'one', 'two', '7 three';

for my $how ('open SAVED, ">&STDERR" or die; open STDERR, ">$file" or die; RUN; open STDERR, ">&SAVED" or die',
    'open my $saved, ">&", \*STDERR or die; open STDERR, ">", $file or die; RUN; open STDERR, ">&", $saved or die',
    'open my $saved, ">&", \*STDERR or die; close STDERR; open STDERR, ">>", $file or die; RUN; close STDERR; open STDERR, ">&=" . fileno $saved or die',
    'require POSIX; open my $saved, ">&", \*STDERR; open my $new, ">", $file; POSIX::dup2(fileno $new, 2); RUN; POSIX::dup2(fileno $saved, 2)') {
    unlink "$folder/file";
    (my $code = $how) =~ s/RUN/print STDERR "inside\\n"; warn "warned\\n"; system "echo child >&2"/;
    check "another file, and back: $how", "$code; print STDERR qq(back\\n); warn qq(warned\\n)", '7 back', 'warn 7 warned';
    is(content(), "inside\nwarned\nchild\n", 'the file has what was printed meanwhile');
}
check 'a local handle', '{ local *STDERR; open STDERR, ">", \my $text or die $!; print STDERR "one\n"; warn "two\n"; print STDOUT $text } print STDERR "three\n"',
    '7 one', '7 two', '7 three';
check 'a handle in memory', 'open my $saved, ">&", \*STDERR; close STDERR; open STDERR, ">", \my $text or die $!; print STDERR "one\n"; close STDERR; open STDERR, ">&", $saved; print STDERR "again $text"',
    '7 again one';
check 'the other handle', 'open STDOUT, ">&STDERR" or die; print "one\n"; open STDERR, ">&", "STDOUT" or die; print STDERR "two\n"; printf "%d%d\n", fileno STDOUT, fileno STDERR', '7 one', '7 two', '7 12';
check 'a file that cannot be opened', 'print open(STDERR, ">", "/nowhere/file") ? "opened\n" : "$!\n"', '7 No such file or directory';
check 'a tie of the application', 'package Mine { sub TIEHANDLE { bless [] } sub PRINT { print STDOUT "mine: $_[1]" } } tie *STDERR, "Mine"; print STDERR "one\n"; untie *STDERR; print STDERR "two\n"',
    '7 mine: one', 'two';

done_testing;
