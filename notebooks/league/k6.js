// The executors of k6: MODE is vus, paced, few or open.
import http from 'k6/http';
import { sleep } from 'k6';

const rate = Number(__ENV.RATE), vus = Number(__ENV.VUS), duration = `${__ENV.DURATION}s`;
const closed = { executor: 'constant-vus', vus, duration, gracefulStop: '30s' };
const arrivals = { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration, gracefulStop: '30s' };
const scenarios = {
  vus: closed,
  paced: closed,
  few: { ...arrivals, preAllocatedVUs: 25 * vus },
  open: { ...arrivals, preAllocatedVUs: 10 * rate },
};

export const options = { scenarios: { only: scenarios[__ENV.MODE] } };

export default function () {
  const began = Date.now();
  http.get(__ENV.URL, { timeout: '60s' });
  if (__ENV.MODE === 'paced') {
    sleep(Math.max(0, vus / rate - (Date.now() - began) / 1000));
  }
}
