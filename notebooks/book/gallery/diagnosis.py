"""Diagnosis

Latency over time with its stalls above, the percentile curves as measured and as corrected below.

$ latencykit diagnose data/ctrlz-uncorrected.hlog --expected-interval 2ms -o diagnosis.png
"""

import latencykit as lk

result = lk.diagnose(lk.read("data/ctrlz-uncorrected.hlog"), expected_interval="2ms")
ax = lk.plot.diagnosis(result)
