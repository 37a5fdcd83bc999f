package bench;

import jakarta.servlet.AsyncContext;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Who waits for the next message: threads in {@link #await}, and contexts without a thread. */
final class Channel {
    private final Queue<AsyncContext> waiting = new ConcurrentLinkedQueue<>();
    private String message = "";
    private long sequence;

    void add(AsyncContext context) {
        waiting.add(context);
    }

    synchronized String await() throws InterruptedException {
        long seen = sequence;
        while (sequence == seen) wait();
        return message;
    }

    void publish(String text) {
        synchronized (this) {
            message = text;
            sequence++;
            notifyAll();
        }
        // Only those that wait now: whoever is answered comes back at once and waits for the next message.
        for (int left = waiting.size(); left > 0; left--) {
            AsyncContext context = waiting.poll();
            if (context == null) return;
            Answer.write(context.getResponse(), text);
            context.complete();
        }
    }
}
