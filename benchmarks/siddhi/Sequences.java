import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;

/** Events in sequence, on Siddhi: rows of four int64 (key, kind, value, time) are sent one by one. */
public class Sequences {
    static long rows = 0;

    public static void main(String[] args) throws Exception {
        ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Paths.get(args[0])));
        data.order(ByteOrder.LITTLE_ENDIAN);
        int count = data.remaining() / 32;
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime app = manager.createSiddhiAppRuntime(new String(Files.readAllBytes(Paths.get(args[1]))));
        app.addCallback("Found", new StreamCallback() {
            @Override
            public void receive(Event[] events) {
                rows += events.length;
            }
        });
        InputHandler input = app.getInputHandler("Items");
        app.start();
        com.sun.management.OperatingSystemMXBean process =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long wall = System.nanoTime(), cpu = process.getProcessCpuTime();
        for (int k = 0; k < count; k++) {
            long key = data.getLong(), kind = data.getLong(), value = data.getLong(), time = data.getLong();
            input.send(time + 1, new Object[] {key, kind, value});
        }
        cpu = process.getProcessCpuTime() - cpu;
        wall = System.nanoTime() - wall;
        System.out.println("{\"rows\": " + rows + ", \"wall\": " + wall / 1e9 + ", \"cpu\": " + cpu / 1e9 + "}");
        app.shutdown();
        manager.shutdown();
        System.exit(0);
    }
}
