"""Plain handlers with transactions, in the threads of a worker that has coroutines, too."""

from paying import pay_in_loop
from paying_native import app

from parkade import Request


@app.post("/pay_in_loop")
async def paying_in_loop(request: Request) -> object:
    return await pay_in_loop(request.body)
