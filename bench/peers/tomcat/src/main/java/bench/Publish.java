package bench;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** POST: one message for all who wait. */
final class Publish extends HttpServlet {
    private final transient Channel channel;

    Publish(Channel channel) {
        this.channel = channel;
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        channel.publish(new String(request.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
        response.setStatus(HttpServletResponse.SC_ACCEPTED);
    }
}
