"""Users that together send the rate which the environment gives (200 per second)."""

from __future__ import annotations

import os

from locust import FastHttpUser, constant_throughput, task


class Caller(FastHttpUser):
    """A user that sends at most its share of the rate, one request after the other."""

    wait_time = constant_throughput(float(os.environ.get("RATE_PER_USER", "50")))

    @task
    def get(self) -> None:
        """Send a request."""
        self.client.get("/")
