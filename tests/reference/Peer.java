// The reference as a second opinion. "write": histograms of many configurations, one a line, with their numbers and their payload.
// "read": payloads from standard input, one a line, as numbers.
// "logs": DoubleHistogram logs in a directory (the next argument), each with its sums and its percentile distributions.
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.HdrHistogram.AbstractHistogram;
import org.HdrHistogram.AtomicHistogram;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.DoubleHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogProcessor;
import org.HdrHistogram.HistogramLogWriter;
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

    // Busy seconds, idle ones, zeros, a single large value, counts: every interval ranges its values anew.
    static DoubleHistogram interval(Random dice, int digits, double base) {
        DoubleHistogram h = dice.nextBoolean() ? new DoubleHistogram(digits) : new DoubleHistogram(1L << (20 + dice.nextInt(20)), digits);
        h.setAutoResize(true);
        int kind = dice.nextInt(10);
        double centre = base * Math.exp(dice.nextGaussian()), width = Math.log(1 + Math.pow(10, dice.nextInt(4))) / 3;
        for (int left = kind == 0 ? 1 : kind == 1 ? 0 : 1 + dice.nextInt(300); left > 0; left--) {
            double value = centre * Math.exp(dice.nextGaussian() * width);
            if (kind == 0) value = base * Math.pow(10, dice.nextInt(7));
            if (kind == 2 || (kind == 3 && dice.nextInt(10) == 0)) value = 0;
            h.recordValueWithCount(value, kind == 4 ? 1 + dice.nextInt(1000) : 1);
        }
        return h;
    }

    static void logs(File folder, int number) throws Exception {
        for (int k = 0; k < number; k++) {
            Random dice = new Random(1600 + k);
            int digits = 1 + k % 5, rows = 1 + dice.nextInt(25);
            double base = Math.pow(10, -7 + dice.nextInt(12));
            String[] tags = dice.nextInt(3) == 0 ? new String[] {null, "A", "bb"} : new String[] {null};
            File log = new File(folder, String.format("%03d.hlog", k));
            HistogramLogWriter writer = new HistogramLogWriter(log);
            writer.outputLogFormatVersion();
            writer.outputStartTime(1700000000000L);
            writer.setBaseTime(1700000000000L);
            writer.outputBaseTime(1700000000000L);
            writer.outputLegend();
            Map<String, DoubleHistogram> sums = new LinkedHashMap<>();
            for (int row = 0; row < rows; row++) {
                for (String tag : tags) {
                    DoubleHistogram h = interval(dice, digits, base);
                    h.setTag(tag);
                    writer.outputIntervalHistogram(row, row + 1, h, 0.001);
                    if (!sums.containsKey(tag)) {
                        DoubleHistogram sum = h.copy(); // as HistogramLogProcessor does
                        sum.reset();
                        sum.setAutoResize(true);
                        sums.put(tag, sum);
                    }
                    sums.get(tag).add(h);
                }
            }
            writer.close();
            for (Map.Entry<String, DoubleHistogram> sum : sums.entrySet()) {
                String tag = sum.getKey() == null ? "" : sum.getKey();
                System.out.println(String.format("%03d", k) + "\t" + tag + "\t" + numbers(sum.getValue()) + " " + sum.getValue().getStdDeviation());
                String out = new File(folder, String.format("%03d.%s", k, tag)).getPath();
                List<String> arguments = new ArrayList<>(Arrays.asList("-i", log.getPath(), "-o", out, "-outputValueUnitRatio", "1.0"));
                if (sum.getKey() != null) arguments.addAll(Arrays.asList("-tag", tag));
                new HistogramLogProcessor(arguments.toArray(new String[0])).run();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("write")) write();
        else if (arguments[0].equals("read")) read();
        else logs(new File(arguments[1]), Integer.parseInt(arguments[2]));
    }
}
