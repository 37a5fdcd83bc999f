package bench;

import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** A constant answer. */
final class Answer extends HttpServlet {
    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) {
        write(response, "Hola");
    }

    static void write(ServletResponse response, String text) {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        response.setContentType("text/plain");
        response.setContentLength(body.length);
        try {
            response.getOutputStream().write(body);
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }
}
