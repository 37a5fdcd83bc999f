"""The tests of Plack and Dancer2 themselves, whose requests go through Parkade (Plack::Test::Parkade)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .harness import perl
from .harness.server import PARKADE, ROOT, clean_environment

SUITES = ROOT / "target" / "suites"
"""The sources, which `tests/perl_suites.sh` fetches."""

pytestmark = pytest.mark.skipif(not perl.has("Plack::Test", "Test::Requires"), reason="Plack is not installed")

DIFFERENT = {
    # It wants the body of a response to HEAD, of an application without the middleware that removes it. There is none
    # over HTTP, whatever the server: Plack's own does not send it either.
    "libdancer2-perl/t/no_default_middleware.t": {1},
}
"""What differs from a call without a server, by the numbers of the tests."""

USES_PLACK_TEST = re.compile(rb"Plack::Test\b(?!::)|\btest_psgi\b")


def files(suite: str) -> list[Path]:
    """The tests that make requests."""
    found = sorted((SUITES / suite / "t").rglob("*.t"))
    return [file for file in found if USES_PLACK_TEST.search(file.read_bytes())]


def failures(file: Path, suite: Path, how: str) -> set[int]:
    """The numbers of the tests that fail; 0 stands for a file that does not run to its end."""
    environment = clean_environment(PLACK_TEST_IMPL=how, PERL5LIB=str(perl.MODULES), PERL_HASH_SEED="0")
    environment["PATH"] = f"{PARKADE.parent}:{environment['PATH']}"
    ran = subprocess.run(
        ["perl", "-Ilib", "-It/lib", file],
        cwd=suite,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    failed = {int(number) for number in re.findall(r"^not ok (\d+)(?!.*# TODO)", ran.stdout, re.MULTILINE)}
    is_whole = re.search(r"^1\.\.\d+", ran.stdout, re.MULTILINE) and ran.returncode == min(len(failed), 254)
    return failed if is_whole else {0, *failed}


OWN = r"""
use Test::More;
use Plack::Test;
use HTTP::Request::Common;

my $count = 0;
my $test = Plack::Test->create(sub {
    my ($env) = @_;
    my $body = do { local $/; readline $env->{'psgi.input'} };
    return [200, ['Content-Type', 'text/plain'], [++$count, " $env->{HTTP_HOST}$env->{REQUEST_URI} ", $body]];
});
my $first = $test->request(POST '/a?b', [c => 1]);
is $first->content, '1 localhost/a?b c=1';
ok $first->header('Date'), 'it comes from the server';
is $test->request(GET 'http://shop.example/')->content, '2 shop.example/ ';
is $count, 2, 'the application runs in this process';

my $delayed = Plack::Test->create(sub {
    return sub { my $writer = $_[0]->([200, []]); $writer->write('a' x 100_000) for 1 .. 5; $writer->close };
});
is length $delayed->request(GET '/')->content, 500_000;

my $failing = Plack::Test->create(sub { die "the reason\n" });
my $response = $failing->request(GET '/');
is join(' ', $response->code, $response->content), "500 the reason\n";
done_testing;
"""


def test_a_test_asks_the_server_and_sees_what_its_application_did(tmp_path: Path) -> None:
    (tmp_path / "own.t").write_text(OWN)
    assert failures(tmp_path / "own.t", tmp_path, "Parkade") == set()


PACKAGES = ("libplack-perl", "libdancer2-perl")


@pytest.mark.parametrize("suite", PACKAGES)
def test_a_suite_is_there(suite: str) -> None:
    if not (SUITES / suite).exists():
        pytest.skip(f"target/suites has no {suite}: tests/perl_suites.sh")
    assert len(files(suite)) > 50


@pytest.mark.parametrize("name", [str(file.relative_to(SUITES)) for suite in PACKAGES for file in files(suite)])
def test_nothing_fails_that_does_not_fail_without_a_server(name: str) -> None:
    file, suite = SUITES / name, SUITES / name.split("/")[0]
    failed = failures(file, suite, "Parkade") - DIFFERENT.get(name, set())
    assert not failed or failed <= failures(file, suite, "MockHTTP")


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_does_so_with_any_server(name: str) -> None:
    """`Server` is Plack's own, HTTP::Server::PSGI."""
    file, suite = SUITES / name, SUITES / name.split("/")[0]
    if not file.exists():
        pytest.skip(f"target/suites has no {suite.name}: tests/perl_suites.sh")
    assert failures(file, suite, "Server") >= DIFFERENT[name]
    assert failures(file, suite, "Parkade") == DIFFERENT[name]
