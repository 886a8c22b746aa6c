// The reference as a second opinion. "write": histograms of many configurations, one a line, with their numbers and their payload.
// "read": payloads from standard input, one a line, as numbers.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Random;
import org.HdrHistogram.AbstractHistogram;
import org.HdrHistogram.AtomicHistogram;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.DoubleHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.IntCountsHistogram;
import org.HdrHistogram.PackedHistogram;
import org.HdrHistogram.ShortCountsHistogram;
import org.HdrHistogram.SynchronizedHistogram;

public class Peer {
    static final double[] PERCENTILES = {0, 1, 25, 50, 90, 99, 99.9, 100};

    static AbstractHistogram of(int kind, long lowest, long highest, int digits) {
        switch (kind) {
            case 0: return new Histogram(lowest, highest, digits);
            case 1: return new IntCountsHistogram(lowest, highest, digits);
            case 2: return new ShortCountsHistogram(lowest, highest, digits);
            case 3: return new AtomicHistogram(lowest, highest, digits);
            case 4: return new ConcurrentHistogram(lowest, highest, digits);
            case 5: return new SynchronizedHistogram(lowest, highest, digits);
            default: return new PackedHistogram(lowest, highest, digits);
        }
    }

    static void print(String name, String numbers, ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.position()];
        buffer.flip();
        buffer.get(bytes);
        System.out.println(name + "\t" + numbers + "\t" + Base64.getEncoder().encodeToString(bytes));
    }

    static String numbers(AbstractHistogram h) {
        StringBuilder text = new StringBuilder(h.getTotalCount() + " " + h.getMinValue() + " " + h.getMaxValue() + " " + h.getMean());
        for (double p : PERCENTILES) text.append(" ").append(h.getValueAtPercentile(p));
        return text.toString();
    }

    static String numbers(DoubleHistogram h) {
        StringBuilder text = new StringBuilder(h.getTotalCount() + " " + h.getMinValue() + " " + h.getMaxValue() + " " + h.getMean());
        for (double p : PERCENTILES) text.append(" ").append(h.getValueAtPercentile(p));
        return text.toString();
    }

    static void write() {
        Random dice = new Random(20);
        long[] lowests = {1, 1000, 1 << 20};
        for (int kind = 0; kind < 7; kind++) {
            for (int digits = 0; digits <= 5; digits++) {
                for (long lowest : lowests) {
                    for (long highest : new long[] {2 * lowest, 3_600_000L * lowest, 1L << 45, Long.MAX_VALUE}) {
                        if (digits >= 4 && kind > 0 && highest >= 1L << 45) continue; // megabytes each
                        AbstractHistogram h = of(kind, lowest, highest, digits);
                        for (int k = 0; k < 60; k++) {
                            long value = (long) Math.exp(dice.nextDouble() * Math.log(highest));
                            h.recordValueWithCount(Math.min(value, highest), kind == 2 ? 1 + dice.nextInt(9) : 1 + dice.nextInt(99999));
                        }
                        ByteBuffer buffer = ByteBuffer.allocate(h.getNeededByteBufferCapacity());
                        String name = "kind " + kind + " digits " + digits + " lowest " + lowest + " highest " + highest;
                        if (dice.nextBoolean()) {
                            h.encodeIntoCompressedByteBuffer(buffer);
                        } else {
                            h.encodeIntoByteBuffer(buffer);
                        }
                        print(name, numbers(h), buffer);
                    }
                }
            }
        }
        for (int digits = 0; digits <= 5; digits++) {
            for (double scale : new double[] {1e-9, 0.37, 1, 1e6}) {
                DoubleHistogram h = new DoubleHistogram(1L << 30, digits);
                for (int k = 0; k < 60; k++) h.recordValueWithCount(scale * Math.exp(dice.nextDouble() * 12), 1 + dice.nextInt(999));
                ByteBuffer buffer = ByteBuffer.allocate(h.getNeededByteBufferCapacity());
                h.encodeIntoCompressedByteBuffer(buffer);
                print("double digits " + digits + " scale " + scale, numbers(h), buffer);
            }
        }
    }

    static void read() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ByteBuffer buffer = ByteBuffer.wrap(Base64.getDecoder().decode(line));
            boolean real = buffer.getInt(0) == 0x0c72124f;
            System.out.println(
                real
                    ? numbers(DoubleHistogram.decodeFromCompressedByteBuffer(buffer, 0))
                    : numbers(Histogram.decodeFromCompressedByteBuffer(buffer, 0)));
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("write")) write(); else read();
    }
}
