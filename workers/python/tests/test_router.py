"""Routers: the parts of an application in several modules."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from parkade import App, HTTPError, Request, Response, Router, Wait, after, html
from parkade._handling.adoption import mount
from parkade._handling.handling import Handling
from parkade._wire import payloads as p
from parkade.errors import SignatureError
from parkade.testing import Client


def paths(app: App) -> list[str]:
    return [f"{route.methods[0]} {route.path}" for route in app._ready().routes]


def app_with(*routers: Router, prefix: str = "", **options: Any) -> App:
    app = App(**options)
    for router in routers:
        app.include(router, prefix=prefix)
    return app


# Paths


def test_a_mounted_application_links_with_its_prefix() -> None:
    router = Router(prefix="/lots")
    router.get("/{id}", name="show")(lambda id: id)
    app = app_with(router)
    mount(app, "/cafés and bars")
    prefix = "/caf%C3%A9s%20and%20bars"
    assert app.path("show", id=7) == router.path("show", id=7) == f"{prefix}/lots/7"
    assert paths(app) == ["GET /lots/{id}"]


def test_paths_of_a_router_begin_with_its_prefix_and_that_of_the_include() -> None:
    orders = Router("/orders")
    orders.get("/", "all")
    orders.get("/{id:int}", lambda id: f"order {id}")
    orders.get("/{id:int}/", lambda id: f"slash {id}")
    app = app_with(orders, prefix="/api/v1")
    assert paths(app) == ["GET /api/v1/orders", "GET /api/v1/orders/{id:int}", "GET /api/v1/orders/{id:int}/"]
    client = Client(app)
    assert client.get("/api/v1/orders").text == "all"
    assert client.get("/api/v1/orders/7").text == "order 7"
    assert client.get("/api/v1/orders/7/").text == "slash 7"


@pytest.mark.parametrize(
    ("own", "include", "path", "full"),
    [
        ("", "", "/", "/"),
        ("", "/a", "/", "/a"),
        ("/b", "", "", "/b"),
        ("/b", "", "/", "/b"),
        ("/b", "/a", "/c", "/a/b/c"),
        ("/b/{x}", "/a/{y:int}", "/{z}", "/a/{y:int}/b/{x}/{z}"),
    ],
)
def test_a_path_is_the_prefixes_and_its_own(own: str, include: str, path: str, full: str) -> None:
    router = Router(own)
    router.get(path, "x")
    assert paths(app_with(router, prefix=include)) == [f"GET {full}"]


def test_routers_nest() -> None:
    inner, outer = Router("/inner", name="inner"), Router("/outer", name="outer")

    @inner.get("/{id}")
    def show(id: str, request: Request) -> list[str | None]:
        return [id, request.route]

    outer.include(inner, prefix="/between")
    app = app_with(outer, prefix="/v2")
    assert Client(app).get("/v2/outer/between/inner/7").json() == ["7", "outer.inner.show"]
    assert app.path("outer.inner.show", id=7) == "/v2/outer/between/inner/7"
    assert outer.path("inner.show", id=7) == inner.path("show", id=7) == app.path("outer.inner.show", id=7)


@pytest.mark.parametrize("prefix", ["shop", "/shop/", "/", "/{rest:path}", "/{a b}"])
def test_a_prefix_is_a_path_without_a_slash_at_its_end(prefix: str) -> None:
    with pytest.raises(SignatureError):
        Router(prefix)
    with pytest.raises(SignatureError):
        App().include(Router(), prefix=prefix)


def test_handlers_may_take_the_parameters_of_a_prefix_and_need_not() -> None:
    shop = Router("/shops/{shop}")
    shop.get("/a", lambda shop: shop)
    shop.get("/b/{n:int}", lambda n: f"{n + 1}")

    @shop.get("/c/{n:int}")
    def both(n: int, tenant: str, request: Request) -> list[object]:
        return [n, tenant, request.parameters["shop"]]

    client = Client(app_with(shop, prefix="/{tenant}"))
    assert client.get("/t/shops/x/a").text == "x"
    assert client.get("/t/shops/x/b/1").text == "2"
    assert client.get("/t/shops/x/c/1").json() == [1, "t", "x"]


def test_a_path_parameter_of_its_own_that_a_handler_does_not_take_is_refused() -> None:
    with pytest.raises(SignatureError, match="no parameter for n"):
        Router("/{shop}").get("/{n}", lambda shop: shop)


def test_a_router_may_be_included_twice() -> None:
    router = Router()
    router.get("/hola", lambda: "Hola", name="hola")
    app = App()
    app.include(router, prefix="/v1")
    app.include(router, prefix="/v2")
    client = Client(app)
    assert (client.get("/v1/hola").text, client.get("/v2/hola").text) == ("Hola", "Hola")
    with pytest.raises(KeyError, match="/v1/hola, /v2/hola"):
        router.path("hola")
    assert app.path("hola") == "/v1/hola"


# Mistakes


def test_a_second_handler_of_a_path_is_refused() -> None:
    app = App()
    app.get("/a/{x}", lambda x: x, name="first")
    with pytest.raises(SignatureError, match=r"GET /a/\{y\} has a handler already: first"):
        app.get("/a/{y}", lambda y: y)
    app.get("/a/{y:int}", lambda y: y)
    app.post("/a/{y}", lambda y: y)
    other = Router()
    other.get("/a/{z}", lambda z: z)
    with pytest.raises(SignatureError, match="has a handler already"):
        app.include(other)


def test_a_decorator_without_its_path_and_the_parameters_of_flask_are_refused() -> None:
    app = App()
    with pytest.raises(SignatureError, match=r"write @app.get\('/path'\)"):

        @app.get  # type: ignore[arg-type]
        def hola() -> str:
            return "Hola"

    with pytest.raises(SignatureError, match=r"write \{name\} for a parameter"):
        app.get("/x/<str:name>", lambda name: name)


def test_what_is_included_takes_nothing_more_and_says_so() -> None:
    router = Router("/a")
    app_with(router)
    for register in (
        lambda: router.get("/b", "x"),
        lambda: router.include(Router()),
        lambda: router.job(lambda: None),
        lambda: router.queue("q", rate=1),
        lambda: router.every(5)(test_routers_nest),
        lambda: router.channel("c", count=1),
    ):
        with pytest.raises(SignatureError, match="included already"):
            register()


def test_only_routers_are_included() -> None:
    app, router = App(), Router()
    for wrong in (App(), "orders"):
        with pytest.raises(TypeError, match="include takes a Router"):
            app.include(wrong)  # type: ignore[arg-type]
    with pytest.raises(SignatureError, match="itself"):
        router.include(router)


def test_a_name_that_several_routes_have_is_not_a_guess() -> None:
    app = App()
    app.get("/a", lambda: "a", name="show")
    app.get("/b", lambda: "b", name="show")
    with pytest.raises(KeyError, match="several routes have the name 'show': /a, /b"):
        app.path("show")
    with pytest.raises(KeyError, match="no route has the name"):
        app.path("list")
    alone = Router()
    alone.get("/x", lambda: "x", name="x")
    with pytest.raises(KeyError, match="nowhere"):
        alone.path("x")


# Hooks and error handlers


def listed(app: App, path: str) -> list[str]:
    return Client(app).get(path).headers.getlist("x-told")


def telling(router: Router, name: str) -> None:
    @router.before
    def before(request: Request) -> None:
        request.state.setdefault("told", []).append(f"before {name}")

    @router.after
    def behind(request: Request, response: Response) -> None:
        for told in request.state.pop("told", []):
            response.headers.add("x-told", told)
        response.headers.add("x-told", f"after {name}")


def nested(concurrent: bool) -> App:
    app, outer, inner = App(concurrent=concurrent), Router("/outer"), Router("/inner")
    for router, name in ((app, "app"), (outer, "outer"), (inner, "inner")):
        telling(router, name)
        router.get("/x", lambda: "x")
        router.get("/constant", "constant")
    outer.include(inner)
    app.include(outer)
    return app


@pytest.mark.parametrize("concurrent", [False, True])
@pytest.mark.parametrize("last", ["x", "constant"])
def test_hooks_of_a_router_are_around_its_own_routes(concurrent: bool, last: str) -> None:
    app = nested(concurrent)
    assert listed(app, f"/{last}") == ["before app", "after app"]
    assert listed(app, f"/outer/{last}") == ["before app", "before outer", "after outer", "after app"]
    assert listed(app, f"/outer/inner/{last}") == [
        "before app",
        "before outer",
        "before inner",
        "after inner",
        "after outer",
        "after app",
    ]


def test_an_after_hook_with_its_arguments_the_other_way_round_is_refused() -> None:
    def swapped(response: Response, request: Request) -> None: ...

    with pytest.raises(SignatureError, match="the request and the response, in this order"):
        App().after(swapped)


def test_hooks_that_come_after_the_include_count_too() -> None:
    router = Router("/r")
    router.get("/x", lambda: "x")
    app = app_with(router)
    telling(router, "router")
    assert listed(app, "/r/x") == ["before router", "after router"]


def test_routes_without_hooks_of_their_own_still_need_no_worker() -> None:
    hooked, free = Router("/hooked"), Router("/free")
    telling(hooked, "hooked")
    for router in (hooked, free):
        router.get("/constant", html("<p>"))
        router.get("/timer", after(1, "x"))
    kinds = {route.path: route.kind for route in app_with(hooked, free)._ready().routes}
    assert kinds == {
        "/hooked/constant": "sync",
        "/hooked/timer": "sync",
        "/free/constant": "constant",
        "/free/timer": "wait",
    }


def failing(concurrent: bool) -> App:
    app, shop, other = App(concurrent=concurrent), Router("/shop"), Router("/other")

    for router in (shop, other, app):
        router.get("/key", lambda: {}["x"])

        @router.get("/gone")
        def gone() -> None:
            raise HTTPError(410)

    @app.error(KeyError)
    def of_app(error: KeyError) -> Response:
        return Response("app", 404)

    @app.error(HTTPError)
    def any_status(error: HTTPError) -> str:
        return "app"

    @shop.error(LookupError)
    def of_shop(error: LookupError) -> Response:
        return Response("shop", 404)

    @shop.error(410)
    def gone_from_shop(request: Request) -> str:
        return f"{request.path} is gone"

    app.include(shop)
    app.include(other)
    return app


@pytest.mark.parametrize("concurrent", [False, True])
def test_the_error_handler_of_the_nearest_router_answers(concurrent: bool) -> None:
    client = Client(failing(concurrent))
    assert (client.get("/shop/key").text, client.get("/shop/gone").text) == ("shop", "/shop/gone is gone")
    assert (client.get("/other/key").text, client.get("/other/gone").text) == ("app", "app")
    assert client.get("/shop/nothing").text == "app", "what matches no route is the application's"


def test_an_asynchronous_hook_moves_the_routes_of_its_router_alone_into_the_loop() -> None:
    quick, slow = Router("/quick"), Router("/slow")
    for router in (quick, slow):
        router.get("/x", lambda: "x")

    @slow.before
    async def before(request: Request) -> None:
        await after(0.5)

    app = app_with(quick, slow)
    handling = Handling(app)
    assert (handling.plain, handling.deferred) == ({None, 0}, {1})
    client = Client(app)
    assert client.get("/quick/x").text == "x"
    parked = client.get("/slow/x")
    client.advance(1)
    assert parked.text == "x"


def later(request: Request) -> Wait:
    return after(1).then(resumed)


def resumed(outcome: None) -> str:
    return "resumed"


def resumed_with(outcome: None, request: Request) -> list[object]:
    return [request.route, dict(request.parameters)]


@pytest.mark.parametrize("concurrent", [False, True])
def test_what_continues_after_a_wait_has_the_hooks_of_its_router(concurrent: bool) -> None:
    router = Router("/r")
    router.get("/later", later)
    telling(router, "router")
    app = app_with(router, concurrent=concurrent)
    app.get("/later", later)
    client = Client(app)
    own, apps = client.get("/r/later"), client.get("/later")
    client.advance(1)
    assert (own.text, own.headers.getlist("x-told")) == ("resumed", ["after router"])
    assert (apps.text, apps.headers.getlist("x-told")) == ("resumed", [])


def test_a_request_that_waited_finds_its_route_again_in_a_newer_version() -> None:
    """Its number may be another one: then the hooks of another router would run."""
    older = App()
    older.get("/a/{id}", lambda id: after(1).then(resumed_with), name="show")
    newer = App()
    newer.get("/new", lambda: "new")
    newer.get("/a/{number}", lambda number: number, name="show")
    [ready] = older._ready().routes
    assert ready.path == "/a/{id}"
    head = msgspec.Raw(msgspec.msgpack.encode(["GET", "/a/7", "", msgspec.Raw(b"\x90"), "", "http", "1.1"]))
    parked = msgspec.msgpack.decode(Handling(older).runs[0](p.Request(0, ["7"], None, b"", head)).park)
    _, (_, function, state, _) = parked
    plain = Handling(newer).call(1, function, state, p.Elapsed())
    response = msgspec.msgpack.decode(plain.run())
    assert msgspec.json.decode(response[2]) == ["show", {"number": "7"}]


# Start, stop, jobs, channels


@pytest.mark.parametrize("concurrent", [False, True])
def test_what_was_started_last_stops_first(concurrent: bool) -> None:
    told: list[str] = []
    app, first, second = App(concurrent=concurrent), Router("/1"), Router("/2")
    for router, name in ((first, "first"), (second, "second"), (app, "app")):
        router.on_start(lambda name=name: told.append(f"+{name}"))
        router.on_stop(lambda name=name: told.append(f"-{name}"))
    app.include(first)
    app.include(second)
    app.include(first, prefix="/again")
    with Client(app):
        pass
    assert told == ["+app", "+first", "+second", "-second", "-first", "-app"]


def test_the_jobs_queues_and_schedules_of_a_router_are_the_applications() -> None:
    router = Router("/r")

    @router.job(queue="mail")
    def send(to: str) -> str:
        return f"sent to {to}"

    @router.every("5 minutes")
    def clean() -> None: ...

    router.queue("mail", concurrency=1)
    router.channel("news/*", count=3)
    router.post("/send", lambda: send.enqueue("Ana").result(timeout=5))
    app = app_with(router)
    ready = app._ready()
    assert [job.name for job in ready.jobs] == ["send", "clean"]
    assert [queue.name for queue in ready.queues] == ["mail"]
    assert [recurring.name for recurring in ready.recurring] == ["clean"]
    assert [channel.pattern for channel in ready.channels] == ["news/*"]
    with Client(app) as client:
        answer = client.post("/r/send")
        client.run_jobs()
        assert answer.text == "sent to Ana"


def test_two_jobs_of_one_name_do_not_meet() -> None:
    first, second = Router("/1"), Router("/2")
    for router in (first, second):

        @router.job
        def send() -> None: ...

    app = app_with(first)
    with pytest.raises(SignatureError, match="two jobs are named 'send'"):
        app.include(second)


def test_an_async_hook_or_job_of_a_router_makes_the_application_concurrent() -> None:
    router = Router("/r")

    @router.on_start
    async def start() -> None: ...

    assert app_with(router)._is_concurrent
    assert not app_with(Router())._is_concurrent


# A slash at the end


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_slash_too_many_or_missing_is_redirected_if_the_application_says_so(concurrent: bool) -> None:
    app = App(redirect_slashes=True, concurrent=concurrent)
    app.get("/notes", lambda: "notes")
    app.post("/notes/{id:int}/", lambda id: f"{id}")
    client = Client(app)
    answer = client.get("/notes/", params={"q": "a b"})
    assert (answer.status, answer.headers["location"]) == (307, "/notes?q=a+b")
    assert client.post("/notes/7").headers["location"] == "/notes/7/"
    assert client.get("/notes/7").status == 404, "that has no GET"
    assert client.get("/nothing/").status == 404
    assert client.post("/notes").status == 405


def test_no_slash_leads_to_another_server() -> None:
    app = App(redirect_slashes=True)
    app.get("/{a}/{b}/", lambda a, b: "x")
    app.get("//evil.example", lambda: "y")
    assert Client(app).get("//evil.example/").status == 404


def test_otherwise_it_is_404_with_a_hint() -> None:
    app = App()
    app.get("/notes", lambda: "notes")
    answer = Client(app).get("/notes/")
    assert answer.status == 404
    assert answer.json()["detail"] == "no route matches this path; there is a route for /notes"
    assert Client(app).post("/notes/").json()["detail"] == "no route matches this path"
