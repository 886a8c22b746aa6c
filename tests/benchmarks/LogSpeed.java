// The reference as a peer: read a log, add all intervals up, take p50, p99 and max of each. Arguments: the log, how many passes.
// Prints processor seconds of every pass: the first is cold, the last warm.
import java.io.File;
import java.lang.management.ManagementFactory;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;

public class LogSpeed {
    // Of all threads: the collector and the compiler work for the reader, too.
    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    public static void main(String[] arguments) throws Exception {
        for (int pass = 0; pass < Integer.parseInt(arguments[1]); pass++) {
            long began = cpu();
            Histogram total = new Histogram(3);
            double series = 0;
            try (HistogramLogReader reader = new HistogramLogReader(new File(arguments[0]))) {
                while (reader.hasNext()) {
                    EncodableHistogram next = reader.nextIntervalHistogram();
                    if (next == null) break;
                    Histogram one = (Histogram) next;
                    series += one.getValueAtPercentile(50) + one.getValueAtPercentile(99) + one.getMaxValue();
                    total.add(one);
                }
            }
            double took = (cpu() - began) / 1e9;
            System.out.println(took + " " + total.getTotalCount() + " " + series);
        }
    }
}
