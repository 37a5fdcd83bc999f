package bench;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

/** Servlet 3 style: the thread goes back to the pool while the request waits. */
final class AsyncLongPoll extends HttpServlet {
    private final transient Channel channel;

    AsyncLongPoll(Channel channel) {
        this.channel = channel;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) {
        var context = request.startAsync();
        context.setTimeout(60_000);
        channel.add(context);
    }
}
