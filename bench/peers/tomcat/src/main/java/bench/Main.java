package bench;

import jakarta.servlet.http.HttpServlet;
import java.io.File;
import java.nio.file.Files;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

/** Embedded Tomcat with its default pool of 200 threads; publishing has a connector, so a pool, of its own. Arguments: port, publishing port, async|blocking. */
public final class Main {
    public static void main(String[] args) throws Exception {
        var channel = new Channel();
        var tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("bench-tomcat").toString());
        tomcat.setConnector(connector(Integer.parseInt(args[0])));
        tomcat.getService().addConnector(connector(Integer.parseInt(args[1])));
        var context = tomcat.addContext("", new File(".").getAbsolutePath());
        serve(context, "/constant", new Answer());
        serve(context, "/next", args[2].equals("async") ? new AsyncLongPoll(channel) : new BlockingLongPoll(channel));
        serve(context, "/publish", new Publish(channel));
        tomcat.start();
        tomcat.getServer().await();
    }

    private static Connector connector(int port) {
        var connector = new Connector();
        connector.setPort(port);
        connector.setProperty("address", "127.0.0.1");
        connector.setProperty("maxConnections", "20000");
        connector.setProperty("acceptCount", "4096");
        connector.setProperty("maxKeepAliveRequests", "-1");
        return connector;
    }

    private static void serve(Context context, String path, HttpServlet servlet) {
        var wrapper = Tomcat.addServlet(context, path, servlet);
        wrapper.setAsyncSupported(true);
        context.addServletMappingDecoded(path, path);
    }
}
