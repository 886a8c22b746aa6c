"""A load generator's report and the truth

What a load generator reported after its server was frozen, and what users would have felt. `latencykit ctrlz` measures both and
draws this picture; here are two clients of the same frozen server.

$ latencykit ctrlz -o ctrlz.png -- wrk -t1 -c4 -d{duration} --latency {url}
"""

import latencykit as lk
from latencykit.ctrlz.run import Calibration

result = Calibration(
    verdict="omits",
    model="closed",
    stall=6.0,
    rows=(),
    reasons=(),
    command=(),
    tool="a client that waits",
    version=None,
    reported=lk.read("data/ctrlz-uncorrected.hlog"),
    truth=lk.read("data/ctrlz-scheduled.hlog").histogram(),
)
ax = lk.plot.ctrlz(result)
