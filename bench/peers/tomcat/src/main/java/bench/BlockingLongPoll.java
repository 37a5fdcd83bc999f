package bench;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

/** Servlet 2 style: the request keeps its thread while it waits, so 200 can wait and the others queue. */
final class BlockingLongPoll extends HttpServlet {
    private final transient Channel channel;

    BlockingLongPoll(Channel channel) {
        this.channel = channel;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) {
        try {
            Answer.write(response, channel.await());
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
