// The reference as a peer: read a log, add all intervals up, take p50, p99 and max of each.
import java.io.File;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;

public class Peer {
    public static void main(String[] arguments) throws Exception {
        Histogram total = new Histogram(3);
        long series = 0;
        try (HistogramLogReader reader = new HistogramLogReader(new File(arguments[0]))) {
            for (Histogram one; (one = (Histogram) reader.nextIntervalHistogram()) != null; total.add(one)) {
                series += one.getValueAtPercentile(50) + one.getValueAtPercentile(99) + one.getMaxValue();
            }
        }
        System.out.println(total.getTotalCount() + " " + total.getMaxValue() + " " + series);
    }
}
