 * Benchmark                                               (prefix)  Mode  Cnt  Score   Error  Units
 * RangeBenchmark.runBenchmark  511226661120000000  avgt   20  0.145 ± 0.001  us/op
 * RangeBenchmark.runBenchmark  511226661130000000  avgt   20  0.142 ± 0.004  us/op
 * RangeBenchmark.runBenchmark  511226661140000000  avgt   20  0.146 ± 0.002  us/op
 * etc
