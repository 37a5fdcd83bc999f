"""Who a client is: a signed cookie, and the hook that asks for it."""

import hmac
import os
from hashlib import sha256

from parkade import HTTPError, Request, Response, Router, redirect

from .pages import pages

KEY = os.environ.get("SHOP_KEY", "for development only").encode()
COOKIE = "user"
DAYS = 30

router = Router(name="accounts")


@router.get("/login")
def login_form(next: str = "/") -> Response:
    return pages.render("login.html", next=next)


@router.post("/login")
def login(name: str, next: str = "/") -> Response:
    """There are no passwords: this is an example of a cookie. `local` keeps `next` on this server."""
    return redirect(next, local=True).set_cookie(COOKIE, signed(name), max_age=DAYS * 86_400)


@router.post("/logout")
def logout() -> Response:
    return redirect("/").delete_cookie(COOKIE)


def require_user(request: Request) -> Response | None:
    """A before hook, for the routers that need a user."""
    name, _, signature = request.cookies.get(COOKIE, "").rpartition(".")
    if name and hmac.compare_digest(signature.encode(), signature_of(name).encode()):
        request.state["user"] = name
        return None
    if request.method != "GET":
        raise HTTPError(401, "log in first")
    return redirect(f"{router.path('login_form')}?next={request.raw_path}")


def signed(name: str) -> str:
    return f"{name}.{signature_of(name)}"


def signature_of(name: str) -> str:
    return hmac.new(KEY, name.encode(), sha256).hexdigest()
