"""Requests around a stall

Every request is a line that rises from its start to its reply. A client that waits sends nothing while the server is frozen;
one that keeps to its schedule does.
"""

import latencykit as lk
from latencykit import simulate

server = simulate.Server("8ms", stalls=[simulate.Stall(2, 1)])
ax = lk.plot.stall_strip(
    {
        "waits for each reply": simulate.paced_loop(server, rate=50, duration=4),
        "on schedule": simulate.open_loop(server, simulate.fixed(rate=50, duration=4)),
    }
)
