// The crate hdrhistogram as a peer: read a log, add all intervals up, take p50, p99 and max of each.
use base64::Engine;
use hdrhistogram::serialization::{interval_log::*, Deserializer};
use hdrhistogram::Histogram;

fn main() {
    let bytes = std::fs::read(std::env::args().nth(1).expect("a log")).expect("readable");
    let mut total = Histogram::<u64>::new(3).expect("digits");
    total.auto(true);
    let (mut series, mut reader) = (0u64, Deserializer::new());
    for entry in IntervalLogIterator::new(&bytes) {
        if let LogEntry::Interval(line) = entry.expect("a line") {
            let payload = base64::engine::general_purpose::STANDARD
                .decode(line.encoded_histogram())
                .expect("base64");
            let one: Histogram<u64> = reader.deserialize(&mut payload.as_slice()).expect("payload");
            series += one.value_at_percentile(50.0) + one.value_at_percentile(99.0) + one.max();
            total.add(&one).expect("room");
        }
    }
    println!("{} {} {}", total.len(), total.max(), series);
}
