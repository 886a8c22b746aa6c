"""The exercises: answers, hints, and what the usual wrong answers mean."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EXERCISES"]


class Exercise(NamedTuple):
    """An exercise: two hints teach, the third shows the code. `usual` maps wrong answers to their misconception.

    `too` says why a number that is none of these is too low or too high; a hint follows it.
    Unit "whole" is a count, which must be exact within the tolerance. An exercise with two questions
    has a tuple of answers, and a tuple of `usual`.
    """

    answer: object
    tolerance: float
    unit: str
    hints: tuple[str, str, str]
    usual: dict | tuple = {}
    too: tuple[str, ...] = ()


EXERCISES = {
    "1.1": Exercise(2.28, 0.05, "%", (
        "A latency below zero is impossible. Zero is two standard deviations below the mean of 10 ms.",
        "Count the requests that have one: a comparison of a column gives True and False, and the mean of these is a share.",
        "(services['bell curve'] < 0).mean() * 100",
    ), {
        3.6: "That is the share below 1 ms. Those between 0 and 1 ms are fast, not impossible.",
        50: "That is the share below the mean. Impossible are the latencies below zero.",
        15.9: "That is the share below 5 ms, one standard deviation below the mean. Zero is two below it.",
        4.55: "That counts both sides of the curve. Only the left side is below zero.",
        0: "A stopwatch measures none, but a bell curve with this mean and deviation has them. Count them in the data.",
        22_750: "That is their number. The question asks for their share in per cent.",
    }, (
        "Too low: zero is only two deviations below the mean, and a bell curve does not end there.",
        "Too high: that counts requests which are fast, and possible. Impossible are those below zero.",
    )),
    "1.2": Exercise(91.55, 0.06, "%", (
        "The question runs backwards: not from a percentile to a latency, but from a latency to a percentile.",
        "Half of the requests are below the median. The mean is far above it, for a few slow values pull it up.",
        "pauses.percentile_of(pauses.mean)",
    ), {
        50: "That is the place of the median. In a skewed distribution the mean lies elsewhere.",
        52.56: "That is the place of the median's bucket. The question asks for the place of the mean.",
        0: "percentile_of takes nanoseconds, and so is pauses.mean: do not convert it to ms.",
        6.1: "percentile_of takes nanoseconds, and so is pauses.mean: do not convert it to µs.",
        67.8: "That is the mean itself, in ms. The question asks for the percentile at which it lies.",
        84.1: "That is where mean plus deviation lies in a bell curve. These pauses follow no bell curve.",
        197: "That is how many times the median the mean is. The question asks for its percentile.",
    }, (
        "Too low: a few long pauses pull the mean far above the middle of the list.",
        "Too high: the pauses that pull the mean up are above it themselves, and there are more of them.",
    )),
    "1.3": Exercise(9.7486, 0.2512, "ms", (
        "The p99 must belong to the fast requests. How large may the share of stalls be?",
        "Only if fewer than one request in a hundred stalls is the p99 a fast one. All fast requests take the same time.",
        "10 - 5 * np.sqrt(p / (1 - p)) with p = 0.005",
    ), {
        10: "That is the mean. With fewer stalls than 1 % the p99 is a fast request, which takes less.",
        5: "That is the standard deviation, or one request in two stalls: then the p99 is a stall.",
        15: "That is the mean plus one deviation: the p99 of two equal speeds, not of rare stalls.",
        59.7: "That is how long the stalls take. With fewer than 1 % of them the p99 is not a stall.",
        80: "That is how long the stalls take. With fewer than 1 % of them the p99 is not a stall.",
        168: "That is how long the stalls take. With fewer than 1 % of them the p99 is not a stall.",
        9.29: "That is the speed of the others if 2 % stall: then the p99 is a stall.",
        45: "That is how long the stalls take if 2 % do. With fewer than 1 % of them the p99 is not a stall.",
    }, (
        "Too low: then one request in a hundred or more stalls, and the p99 is a stall.",
        "Too high: that is not below the mean of 10 ms.",
    )),
    "2.1": Exercise(27.8, 0.05, "h", (
        "One request in a million is slower than p99.9999. Ten of those have to lie above it.",
        "The lesson's table has the number of requests that support it. Divide it by the rate, and mind the unit.",
        "10,000,000 requests / 100 per second / 3,600 seconds per hour",
    ), {
        2.78: "That is for a million requests: they contain one such request on average, and none in 37 % of all runs.",
        10.25: "From then on its interval has an upper end. Ten requests above it take longer.",
        55.6: "That is at 50 requests per second, as in the lesson. Here it is 100.",
        1667: "Those are minutes; the question asks for hours.",
        100_000: "Those are seconds; the question asks for hours.",
        0.278: "That is for p99.99, which needs a hundredth of the requests.",
        10_000_000: "That is the number of requests. How many hours do they take?",
        1.157: "Those are days; the question asks for hours.",
    }, (
        "Too short: of so few requests fewer than ten lie above p99.9999.",
        "Longer than needed: ten requests lie above p99.9999 already.",
    )),
    "2.2": Exercise(10, 0, "whole", (
        "The highest supported percentile lies a little below the maximum: a few requests must lie above it.",
        "First the percentile that this number of independent requests supports, then its latency, then the requests above that.",
        "h.count_above(h.percentile(quantiles.highest_supported_percentile(h.count)))",
    ), {
        30: "That is how many lie above p99.99. These requests support more than that.",
        3: "That is enough for the interval to have an upper end. A supported percentile has more requests above it.",
        4: "That is enough for the interval to have an upper end. A supported percentile has more requests above it.",
        1: "With one request above it nothing bounds the percentile from above.",
        0: "Nothing lies above the maximum, and the maximum is not a supported percentile.",
        99.9967: "That is the percentile. The question is how many requests lie above it.",
        300056: "That is the number of all requests. The question is how many lie above the highest supported percentile.",
        300: "That is how many lie above p99.9. These requests support more than that.",
    }, (
        "Too few: these are the largest values that happened, and the next run has others.",
        "Too many: fewer above it suffice, so a higher percentile is supported.",
    )),
    "2.3": Exercise(45, 12, "", (
        "The maximum is below the true p99.9 if all 1,500 requests are. How likely is that?",
        "Draw 1,500 samples in a loop of 200 turns, and count the turns whose maximum is below 6.908.",
        "rng = np.random.default_rng(0); sum(rng.exponential(1, 1500).max() < 6.908 for _ in range(200))",
    ), {
        155: "That is how often the maximum is above. The question is how often it is below.",
        22.3: "That is the share in per cent. The question asks for the number of the 200 samples.",
        0.223: "That is the probability. The question asks for the number of the 200 samples.",
        0.2: "One request in 1,000 is above p99.9, so you expect 1.5 in a sample; but some samples have none at all.",
        0: "You expect 1.5 of 1,500 requests above p99.9, but chance gives some samples none.",
        1.5: "That is how many of 1,500 requests you expect above p99.9. The question is how many samples have none.",
        200: "In most samples one of 1,500 requests lies above p99.9.",
    }, (
        "Too few: only one request in 1,000 lies above p99.9, so samples without any are not rare.",
        "Too many: most samples have one of their 1,500 requests above p99.9.",
    )),
    "3.1": Exercise(400, 0.5, "ms", (
        "The percentile of the merged list lies between the percentiles of its parts.",
        "If 99 % of the requests to each host are below some number, 99 % of all requests are. Which number is that?",
        "max(12, 80, 400)",
    ), {
        164: "That is the average of the three p99s, which bounds nothing: the p99 of all can be higher.",
        80: "That is the median of the three. The host with 400 ms can have most of the slow requests.",
        12: "That is the lower bound: the p99 of all is at least the lowest of the three.",
        492: "That is the sum. Percentiles do not add, and the p99 of all is never above the highest of them.",
        1200: "That is three times the highest. Merging hosts makes no request slower.",
        206: "That is the middle between the lowest and the highest, which bounds nothing.",
        133.3: "That is a third of the highest, as if its slow requests counted for a third. Percentiles are not shared out.",
    }, (
        "Not certain: the slow requests of one host can be the slowest of all.",
        "Certain, but not the lowest such bound: no host has so high a p99.",
    )),
    "3.2": Exercise(4143, 6, "us", (
        "The p99 of all requests is a position in one merged list, not a number between two p99s.",
        "Each tag has a histogram. Add the two, and compute the percentile of the sum.",
        "(log.tagged('get').histogram() + log.tagged('set').histogram()).percentile(99) / 1000",
    ), {
        3380: "That is the average of the two p99s.",
        3905: "That is the average of the two p99s, weighted by their requests: still an average of percentiles.",
        4256: "That is the p99 of the GETs: an upper bound, not the answer.",
        2505: "That is the p99 of the SETs: a lower bound, not the answer.",
        6760: "That is the sum of the two p99s. Percentiles do not add.",
    }, (
        "Too low: the slower kind of request has most of the traffic.",
        "Too high: the faster kind has requests as well, which move the position of the p99.",
    )),
    "3.3": Exercise(50, 1, "%", (
        "The p99 jumps when more than one request in a hundred of *all* requests is slow.",
        "Only requests to A can be slow, and of these 2 in 100 are. Which share of the traffic makes that 1 in 100 of all?",
        "1 % / 2 % = 50 %",
    ), {
        66.7: "That is for 1.5 % slow requests, as in the lesson. Here it is 2 %.",
        2: "That is the share of the slow requests of A. The question asks for the share of the traffic that goes to A.",
        1: "That is the share of slow requests at which the p99 jumps. Which traffic gives that share?",
        20: "That is for 5 % slow requests.",
        99: "The p99 jumps long before nearly all traffic goes to A.",
        100: "With all traffic at A, 2 % are slow: the p99 has jumped before.",
        98: "That is the share of A's requests that are fast. The question asks for the share of the traffic that goes to A.",
    }, (
        "Not yet: fewer than one request in a hundred of *all* is slow there, so the p99 is 10 ms.",
        "It has jumped before: more than one request in a hundred of *all* is slow there.",
    )),
    "4.1": Exercise(106, 0, "whole", (
        "A user meets none if all n requests are below the p99.9. Independent probabilities are multiplied.",
        "The probability that all n are fast is 0.999 to the power of n. From which n on is that below 90 %?",
        "int(np.ceil(np.log(0.9) / np.log(0.999)))",
    ), {
        100: "That adds up 0.1 % per request, and so counts a page with two slow requests twice.",
        101: "That adds up 0.1 % per request, and so counts a page with two slow requests twice.",
        105: "With 105 requests it is 9.97 %, still below 10 %.",
        11: "That is for the p99. Here it is the p99.9.",
        69: "That is where half of the users meet the p99.",
        693: "That is where half of the users meet it. The question asks for 10 %.",
        2302: "That is where 90 % of the users meet it. The question asks for 10 %.",
        1000: "That is where one slow request is expected on average: then 63 % of the users meet one.",
        10: "That is the share in per cent. The question asks for the number of requests.",
    }, (
        "Not yet: with so few requests fewer than 10 % of the users meet one.",
        "From fewer on: at that number it is well above 10 % of the users.",
    )),
    "4.2": Exercise(8.35, 0.06, "%", (
        "In a log the slow requests of one moment belong to the same users, so fewer users meet one than by dice.",
        "The lesson has a function that computes both for one log: independent requests, and those of one interval.",
        "met_by_users(lk.read(DATA / 'jhiccup-gc.hlog'), 10)[1]",
    ), {
        9.46: "That is for independent requests. Requests of one interval are slow together.",
        9.56: "That is 1 - 0.99 to the power of 10, for independent requests. Requests of one interval are slow together.",
        10: "That adds up 1 % per request, and so counts a user with two slow requests twice.",
        1: "That is the share of slow requests. Each user makes ten.",
        30.6: "That is for 100 requests per user. Here it is 10.",
        63: "That is for 100 independent requests per user.",
        0.1: "That divides by ten. Ten requests meet a slow one more often than one does.",
    }, (
        "Too low: ten requests meet a slow moment more often than one does.",
        "Too high: that is more than independent requests would meet, and these are slow together.",
    )),
    "4.3": Exercise(13.9, 0.06, "%", (
        "A page is fast if the shared cause does not strike, and none of the 2,000 servers is slow on its own.",
        "Multiply the probabilities of these 2,001 events. One has 0.25 of 0.0001 against it, the others 0.75 of it.",
        "100 * (1 - (1 - 0.25e-4) * (1 - 0.75e-4) ** 2000)",
    ), {
        18.1: "That is for independent servers. A quarter of the slowness strikes all of them together.",
        13.6: "That mixes two worlds, a quarter of all pages with shared slowness only. Here each page meets both kinds.",
        20: "That adds up the probabilities, and so counts a page with two slow servers twice.",
        15: "That adds up the probabilities of the unshared part, and so counts a page with two slow servers twice.",
        4.9: "That is for three quarters shared. Here it is one quarter.",
        0.01: "That is one server. A page waits for 2,000.",
        4.53: "That is a quarter of the independent result. The unshared three quarters strike pages, too.",
        25: "That is the part that is shared. The question asks for the share of the page views.",
    }, (
        "Too low: three quarters of the slowness strike each of 2,000 servers on its own.",
        "Too high: what strikes all servers at once strikes fewer pages.",
    )),
    "5.1": Exercise((100, 0.001), 0, "s", (
        "Write the latencies as a list, and sort it in your mind. A percentile is the first place that reaches its share.",
        "99.99 % of 9,999 is 9,998.0001, so place 9,999 is the first that reaches it. And 99.99 % of 10,000?",
        "nearest_rank([0.001] * 9998 + [100], 99.99), nearest_rank([0.001] * 9999 + [100], 99.99)",
    ), ({
        0.001: "9,998 of 9,999 are 99.98999 %, a little less than 99.99 %. So p99.99 is the next place.",
        50: "That interpolates between two places. A percentile is a value that was measured.",
        99.99: "That is the percentile's name, not a latency.",
        99.98: "That interpolates. A percentile is a value that was measured.",
        0.011: "That is the mean. A percentile is a value that was measured.",
    }, {
        100: "9,999 of 10,000 are exactly 99.99 %, so p99.99 is the last of the fast ones.",
        0.011: "That is the mean. A percentile is a value that was measured.",
        50: "That interpolates between two places. A percentile is a value that was measured.",
        0.01: "That interpolates, or is the mean. A percentile is a value that was measured.",
    })),
    "5.2": Exercise(27.5, 0.6, "s", (
        "After the stall 10,000 requests wait. An ideal server answers all of them at once, a real one in turn.",
        "The mean is over all users: half of them came before the stall. Only the server changes, by one argument.",
        "open_loop(Server('1ms', stalls=[Stall(100, 100)]), fixed(100, 200)).values.mean() / 1e9",
    ), {
        25: "That is with ideal=True, where the backlog is answered at once.",
        50: "That is the mean wait for the end of the stall, of those who came during it, without the backlog.",
        55: "That is the mean over the users who came during the stall. The question asks for the mean over all.",
        0.011: "That is the closed loop's mean: it sent one request during the stall. Ask the users.",
        100: "That is the longest wait. The question asks for the mean.",
        5: "That is the median of all, which is near the end of the backlog. The question asks for the mean.",
    }, (
        "Too low: half of the users came during the stall, and those after it wait for the backlog.",
        "Too high: half of the users came before the stall, and waited for 1 ms.",
    )),
    "5.3": Exercise(4020, 20, "ms", (
        "A correction adds the requests that one connection would have sent while it waited.",
        "The right interval is the time between two requests of that connection. 500 per second are one every …",
        "lk.correct(log, '2ms').histogram().percentile(90) / 1e6",
    ), {
        0.15: "That is not corrected: the requests that were not sent are missing.",
        4702: "That is corrected with 1 ms, as if the connection had sent 1,000 per second.",
        0.397: "That is corrected with 10 ms, the interval of the lesson's simulation.",
        0.193: "That is corrected with 20 ms, so most of the missing requests stay missing.",
        5805: "That is p99. The question asks for p90.",
        6000: "That is the length of the freeze, or the maximum. The question asks for p90.",
        2: "That is the interval. The question asks for the p90 after the correction with it.",
        3000: "That is how many requests were due during the freeze. The question asks for the p90, in ms.",
    }, (
        "Too low: too few requests are filled in, as with an interval that is too long.",
        "Too high: that number is filled in only if the connection sends more often than it does.",
    )),
    "6.1": Exercise(98, 0, "whole", (
        "Sort all 1,000 requests. Those that timed out come last: each took at least 5 s.",
        "980 requests took 10 ms. From the 981st on all that is known is '5 s or more'.",
        "980 of 1,000 is p98",
    ), {
        99: "The 990th of 1,000 timed out: 20 did. The p99 is known to be 5 s or more.",
        100: "That leaves out the timeouts, and with them the slowest requests.",
        97: "p97 is known to be 10 ms, but it is not the highest.",
        2: "That is the share that timed out, in per cent.",
        980: "That is the place in the sorted list. Which percentile is it?",
        20: "That is the number of timeouts.",
        0.98: "That is the share. Which percentile is it?",
    }, (
        "That percentile is known to be 10 ms, and so is a higher one.",
        "That one falls among the timeouts: all that is known is 5 s or more.",
    )),
    "6.2": Exercise(16, 0, "whole", (
        "A closed loop sends nothing while it waits. How often does one connection give up during 6 s?",
        "A connection gives up after 2 s, sends the next request, gives up again, and the third is answered as the freeze ends.",
        "paced_loop(server, 500, 20, connections=8, timeout='2s').histogram().censored",
    ), {
        2000: "That is the open loop's count. A closed loop sends nothing while it waits.",
        2: "That is one connection. There are eight.",
        8: "That is one timeout per connection. After it the connection sends the next request, into the same freeze.",
        24: "The third request of each connection is answered, for the freeze ends after 6 s: just in time.",
        3: "The freeze contains three timeouts of 2 s, but there are eight connections, and the third request is answered.",
        3000: "That is how many requests were due during the freeze. A closed loop sends few of them.",
        1: "Each of the eight connections waits on its own.",
        0: "Each connection waits for a request that the freeze holds up for more than 2 s.",
        48: "That is one timeout per second and connection. A connection gives up after 2 s.",
        1000: "That is how many requests are due in 2 s. A closed loop sends few of them.",
    }, (
        "Too few: eight connections wait, and each gives up more than once during the freeze.",
        "Too many: a connection sends its next request only when it has given up the one before.",
    )),
    "6.3": Exercise("met", 0, "", (
        "More than half of all attempts were answered. What does that say about the median?",
        "Count the timeouts as slower than everything else. Which place has the median then?",
        "lk.SLO.parse('p50=10ms').check(hasty.histogram())[0].outcome",
    ), {
        "missed": "2,000 of 10,000 timed out: they have the places above p80. The median is below them, and is 1 ms.",
        "unknown": "What is unknown is how long the timeouts took. They have the places above p80, so the median is known.",
        "no": "2,000 of 10,000 timed out: they have the places above p80. The median is below them, and is 1 ms.",
        "undecided": "What is unknown is how long the timeouts took. They have the places above p80, so the median is known.",
        "fails": "2,000 of 10,000 timed out: they have the places above p80. The median is below them, and is 1 ms.",
        "failed": "2,000 of 10,000 timed out: they have the places above p80. The median is below them, and is 1 ms.",
        "false": "2,000 of 10,000 timed out: they have the places above p80. The median is below them, and is 1 ms.",
        "not met": "2,000 of 10,000 timed out: they have the places above p80. The median is below them, and is 1 ms.",
        "cannot tell": "What is unknown is how long the timeouts took. They have the places above p80, so the median is known.",
        "can't tell": "What is unknown is how long the timeouts took. They have the places above p80, so the median is known.",
        "censored": "What is unknown is how long the timeouts took. They have the places above p80, so the median is known.",
        "another word": "Three words are possible: met, missed or unknown. Which places do the timeouts have, and which has the median?",
    }),
    "7.1": Exercise(3.33, 0.01, "%", (
        "Who waits longer than 1 s? Those who arrive in the stall, except during its last second.",
        "d is the stall, x the wait, T the run. The share of the run in which such requests arrive is (d - x) / T.",
        "100 * (3 - 1) / 60",
    ), {
        5: "That is the share that arrives during the stall. Those of its last second wait less than 1 s.",
        1.67: "That is the share that arrives in the stall's last second, and waits less than 1 s.",
        66.7: "That is the share of the delayed requests. The question asks for the share of all.",
        6.67: "That is (3 + 1) / 60. The wait of 1 s shortens the time in which they arrive.",
        33.3: "That is the share of the stall. The question asks for the share of all requests of the run.",
        2: "Those are seconds. Which share of the run are they?",
        3: "Those are the seconds of the stall. Which share of the run is it, without its last second?",
    }, (
        "Too low: all who arrive before the stall's last second wait longer than 1 s.",
        "Too high: only those who arrive in the stall wait, and those of its last second not long enough.",
    )),
    "7.2": Exercise(4.26, 0.01, "", (
        "A back-filled tail is an arithmetic progression: its percentiles lie whole intervals apart. Does this one?",
        "Take the row of the table, subtract p99 from p99.9, and count in intervals of 20 ms.",
        "(worst.loc['NATS file', 'p99.9'] - worst.loc['NATS file', 'p99']) / 20",
    ), {
        0.54: "That is the difference between p99.9 and p99.99. The question asks for the difference between p99 and p99.9.",
        4.8: "That is the difference between p99 and p99.99. The question asks for the difference between p99 and p99.9.",
        85.1: "Those are milliseconds. How many intervals of 20 ms are they?",
        13: "That is Kafka's, or that of NATS without fsync: a whole number. The question asks for 'NATS file'.",
        0.109: "That is NATS in memory. The question asks for 'NATS file'.",
        4: "Rounded to whole steps, the question is lost: is it a whole number?",
        6.52: "That is p99.9 alone. The question asks for its difference from p99.",
        2.26: "That is p99 alone. The question asks for its difference from p99.9.",
        130.4: "That is p99.9 itself, in ms.",
    }, (
        "Too small: that is not the difference of p99 and p99.9 in steps of 20 ms.",
        "Too large: that is not the difference of p99 and p99.9 in steps of 20 ms.",
    )),
    "7.3": Exercise(1500, 60, "", (
        "How many requests does a stall of 6 s delay by more than 1 s, at 300 per second?",
        "Those who arrive in the stall's last second wait less than 1 s. The others arrive in 6 - 1 seconds.",
        "300 * (6 - 1)",
    ), {
        1800: "That is how many arrive during the stall. Those of its last second wait less than 1 s.",
        300: "That is how many arrive in one second: those who wait less than 1 s.",
        25: "That is the share in per cent. The question asks for the number of requests.",
        5: "Those are the seconds of the stall. How many requests arrive in them?",
        6000: "That is all requests of the file. Most were sent while the server ran.",
        1: "One slow request is what a tool records that omits the others.",
        900: "That is the shadow at half of the stall, 3 s. The question asks for 1 s.",
        4500: "Those are the others: the requests that did not wait for more than 1 s.",
        2100: "That adds the second instead of subtracting it.",
    }, (
        "Too few: everybody who arrives before the stall's last second waits longer than 1 s.",
        "Too many: more than arrive during the stall without its last second.",
    )),
    "8.1": Exercise(10, 0.05, "ms", (
        "Response time is service time plus waiting, and waiting grows as the idle share shrinks.",
        "The mean response time is the service time, divided by the idle share of the time.",
        "1 / (1 - 0.9)",
    ), {
        9: "That is the waiting time. The response time includes the service.",
        1.11: "That divides by the busy share. The idle share is what matters.",
        1.9: "That adds the busy share. The response time grows like 1 / (1 - busy).",
        0.9: "That multiplies by the busy share: no request is faster than its service.",
        46.1: "That is the p99. The question asks for the mean.",
        5: "That is at 80 % busy. Each step towards 100 % costs more than the one before.",
        20: "That is at 95 % busy.",
        1: "That is the service time. Requests also wait.",
        0.1: "That is the idle share. The service time is divided by it.",
        11: "That adds the service time twice: the formula includes it.",
        100: "That is at 99 % busy.",
    }, (
        "Too low: at 90 % busy nearly every request finds others before it.",
        "Too high: that is the mean of a busier server.",
    )),
    "8.2": Exercise(180, 30, "s", (
        "With two cashiers and one queue, one slow customer no longer blocks all the others.",
        "The same customers meet twice the servers: each is busy 40 % of the time, so most do not wait at all.",
        "nearest_rank(open_loop(Server(..., servers=2), poisson(...)).values, 99) / 1e9, with the same arrivals",
    ), {
        460: "That is with one cashier.",
        230: "That is half of the time with one cashier. The wait shrinks by far more than half.",
        920: "A second cashier makes nobody slower.",
        35.4: "That is the mean. The question asks for the p99.",
        257: "That is the maximum. The question asks for the p99.",
        30: "That is the service time of most customers. The p99 meets the slow ones.",
        218: "That is one cashier who is half as busy. Two cashiers with one queue do better.",
        31.5: "That is the mean service time. The question asks for the p99 of the response time.",
        108: "That is the mean with one cashier.",
    }, (
        "Too low: one customer in a hundred takes 180 s at the till, however short the queue.",
        "Too high: with two cashiers a slow customer blocks only one of them.",
    )),
    "8.3": Exercise(6500, 10, "/s", (
        "While the backlog is served, new requests arrive. Count both.",
        "How many requests wait when the stall ends, and how many arrive in half a second?",
        "(3000 + 250) / 0.5",
    ), {
        6000: "That clears the backlog only. 500 per second keep arriving.",
        7000: "That counts the arrivals of a whole second. In half a second 250 arrive.",
        3250: "That is the number of requests. They are to be answered in half a second.",
        3500: "That clears the backlog in a whole second.",
        500: "That is the rate of arrival: the backlog would never shrink.",
        3000: "That is the number of requests that wait. How many per second is that, with those that arrive?",
        12000: "That is four times the backlog. Half a second doubles the rate once.",
        1750: "That multiplies by half a second. Divide: a shorter time takes a higher rate.",
        1625: "That multiplies by half a second. Divide: a shorter time takes a higher rate.",
        1500: "That multiplies by half a second. Divide: a shorter time takes a higher rate.",
    }, (
        "Too slow: backlog and arrivals together are not cleared in half a second.",
        "Faster than needed: only the arrivals of half a second come on top of the backlog.",
    )),
    "9.1": Exercise(5, 0, "whole", (
        "An exact test cannot give a p-value below one over the number of ways to split the runs.",
        "The lesson lists the smallest p-value for 3, 4 and 5 runs per side. Which is below 0.01?",
        "of_runs.runs_needed(0.01)",
    ), {
        3: "3 against 3 runs can never give less than p = 0.1.",
        4: "4 against 4 runs can give p = 0.029: below 5 %, but not below 1 %.",
        2: "2 against 2 runs can never give less than p = 0.33.",
        10: "That is both sides together. The question asks for the number per side.",
        6: "Six will do, but five do already: p = 0.008.",
        100: "1 / 0.01 counts requests, or splits. Five against five runs can be split in 252 ways.",
        1: "One run per side says nothing about the variation between runs.",
        20: "That is more than enough: five per side give p = 0.008.",
        252: "That is in how many ways five against five runs can be split. The question asks for the number per side.",
    }, (
        "Too few: even the clearest difference of so few runs has a p-value above 0.01.",
        "That is enough, but fewer runs are, too.",
    )),
    "9.2": Exercise(78, 12, "%", (
        "The test takes requests of one run as independent. The more runs differ, the more it is wrong.",
        "At 3 % noise it raised a false alarm in half of the comparisons. At 10 % runs differ by more.",
        "false_alarms(200, 0.10)['all requests together']",
    ), {
        48.5: "That is at 3 % noise.",
        5: "That is the level of the test. It holds for independent requests only.",
        10: "That is the noise. The question is how often the test raises a false alarm.",
        4: "That is the test on one number per run. The question asks for the one on all requests.",
        50: "That is at 3 % noise.",
        100: "Some comparisons of equal sides come out equal by chance.",
        1.5: "That is one number per run, at 3 % noise.",
        156: "That is the number of 200 comparisons. The question asks for the share in per cent.",
    }, (
        "Too low: the more runs differ, the more often equal sides look different.",
        "Too high: in some comparisons equal sides look equal, by chance.",
    )),
    "9.3": Exercise(54, 0.6, "%", (
        "A change is a share of what it is compared with: here the log on schedule.",
        "Both percentiles are in the logs' histograms. One minus their ratio, in per cent.",
        "100 * (1 - corrected.percentile(50) / scheduled.percentile(50))",
    ), {
        117: "That is by how much the p50 on schedule is higher. The question is by how much the other is lower.",
        46: "That is what remains. The question is by how much it is lower.",
        0.07: "That is p99, which agree. The question asks for p50.",
        0.111: "That is the difference in ms. The question asks for per cent.",
        2.17: "That is the factor. The question asks for per cent.",
        0: "The p99s agree. The p50s do not.",
    }, (
        "Too low: the median of the corrected log is less than half of the other.",
        "Too high: nearly half of the other median remains, and nothing is more than 100 % lower.",
    )),
    "10.1": Exercise(62, 0.05, "%", (
        "A fall is measured by what it starts from.",
        "3.8 of 10 remain. The question asks for the part that is gone.",
        "100 * (1 - 3.8 / 10)",
    ), {
        38: "That is the part that remains. The question asks for the part that is gone.",
        163: "That is relative to the new value. A fall is measured by the old one, and never exceeds 100 %.",
        2.63: "That is the factor. The question asks for per cent.",
        6.2: "That is the difference in ms. The question asks for per cent.",
        90: "That is what the article says.",
        3.8: "That is the new latency in ms. The question asks for the fall in per cent.",
    }, (
        "Too low: less than half of the 10 ms remains.",
        "Too high: 3.8 of the 10 ms remain.",
    )),
    "10.2": Exercise(5931, 0, "whole", (
        "Values that were filled in are in one file and not in the other.",
        "The tool wrote two files for the same run: latency.txt and uncorrected_latency.txt. Compare their counts.",
        "frozen['corrected'].count - frozen['raw'].count",
    ), {
        20231: "Those are all values. Most of them were measured.",
        14300: "Those were measured. The others were filled in.",
        29.3: "That is the share in per cent. The question asks for the number.",
        145: "That is the run without a freeze.",
        6000: "That is rate times freeze, 1,000 per second for 6 s. Count them: the tool was not quite that fast.",
        1: "One request met the freeze. Many were filled in for it.",
        34_531: "That is the sum of both files. The measured values are in both.",
        41.5: "That is per cent of the measured values. The question asks for the number.",
    }, (
        "Too few: what the corrected file has and the uncorrected one has not was filled in.",
        "Too many: most values are in both files, and were measured.",
    )),
    "10.3": Exercise(55, 0, "whole", (
        "The first correction adds 90, 80, … 10 ms: ten values. The second corrects each of them again.",
        "A value of k × 10 ms becomes k values. Add them up for k from 1 to 10.",
        "lk.correct(lk.correct(lk.Histogram.of([100], unit='ms'), '10ms'), '10ms', force=True).count",
    ), {
        10: "That is corrected once.",
        100: "That makes ten of each of the ten. A value of 20 ms becomes two only.",
        45: "Those are the values that the second correction adds.",
        54: "Those are the values that were filled in. The question asks for all values.",
        19: "That corrects the measured value only. The second correction cannot know which were filled in.",
        20: "That doubles. The second correction adds more for slow values than for fast ones.",
        1: "One request was measured. Each correction fills in more.",
        9: "Those are the values that the first correction adds.",
        110: "That adds a corrected 100 to ten values. The second correction cannot know which were filled in.",
    }, (
        "Too few: the second correction fills in for each of the ten values, also for those that the first one made.",
        "Too many: only one of the ten values is as slow as 100 ms; the faster ones become fewer.",
    )),
    "11.1": Exercise(9.25, 0.05, "", (
        "Lift compares the share of the slow requests with the share of all requests, of one page.",
        "Divide one share by the other; a lift above one goes with slow requests.",
        "74 / 8",
    ), {
        0.108: "That is the inverse: the share of all, divided by the share of the slow ones.",
        66: "That is the difference of the shares. Lift is their ratio.",
        32.7: "That is the ratio of the odds. Lift is the ratio of the shares.",
        74: "That is the share of the slow requests. Compared with what?",
        2.85: "That compares the slow requests of the page with the other slow ones.",
        82: "That is the sum of the shares. Lift is their ratio.",
        592: "That is the product of the shares. Lift is their ratio.",
        925: "That is the lift in per cent; it is a factor.",
    }, (
        "Too low: the page has far more of the slow requests than of all requests.",
        "Too high: lift is one share divided by the other, both in the same unit.",
    )),
    "11.2": Exercise(100, 0.5, "%", (
        "Ordinary requests take some milliseconds. What else can take more than 500 ms in this shop?",
        "Only the threshold is another one, and the suspects have a column with the share above it.",
        "100 * lk.explain(shop, above='500ms').suspects['share_above'][0]",
    ), {
        55: "That is above the p99. The question asks for those above 500 ms.",
        12.5: "That is the shard's share of all requests. The question asks for its share of the slow ones.",
        4.44: "That is the lift above the p99. The question asks for a share.",
        8: "That is the lift: the share of the slow ones, divided by the share of all.",
        50: "That is the home page's share. The question asks for the shard's.",
        3: "That is the number of the shard. The question asks for its share of these requests.",
    }, (
        "Too low: what else than the pause can make a request of this shop that slow?",
        "No share is above 100 %.",
    )),
    "11.3": Exercise(10, 0, "whole", (
        "It is the same as with a coin: each pause hits the named host with probability one half.",
        "Independent probabilities are multiplied. How often must one half be multiplied by itself?",
        "int(np.ceil(np.log(0.001) / np.log(0.5)))",
    ), {
        9: "Nine in a row have the probability 0.00195, still above 0.001.",
        11: "Eleven would be needed if the host were not named beforehand: then either of two would do.",
        1000: "That is 1 / 0.001. Probabilities in a row are multiplied.",
        500: "That is half of 1 / 0.001. Probabilities in a row are multiplied.",
        1: "One pause hits the named host with probability one half.",
        7: "Seven in a row have the probability 0.008: below 0.01, not below 0.001.",
        5: "Five in a row have the probability 0.03: below 0.05, not below 0.001.",
        3: "Three in a row have the probability 0.125. 0.001 is three zeros, not three pauses.",
        1024: "That is two to the power of the answer.",
    }, (
        "Too few: by chance alone, a row of that length happens more often than once in 1,000.",
        "More than needed: fewer in a row are rarer than once in 1,000 already.",
    )),
    "12.1": Exercise(100_000, 0, "whole", (
        "Above p99.99 lies one request in 10,000. A supported percentile has ten above it.",
        "The lesson on the nines has a table with this number.",
        "fanout.samples_needed(99.99)",
    ), {
        10_000: "That is enough for p99.9. Above p99.99 lies one such request on average, and none in 37 % of all runs.",
        36_887: "From this number on its interval has an upper end. Ten requests above it take more.",
        1_000_000: "That is for p99.999.",
        10_000_000: "That is for p99.9999.",
        1_000: "That is for p99.",
    }, (
        "Too few: fewer than ten of them lie above p99.99.",
        "More than needed: with fewer requests ten lie above p99.99 already.",
    )),
    "12.2": Exercise(5.8, 0.06, "s", (
        "A tool that omits reports the p99 of what it sent. Users also meet what was not sent.",
        "Step 4 finds how much is missing. The diagnosis has the distribution with it: `corrected`, beside `raw`.",
        "lk.diagnose(lk.read(DATA / 'ctrlz-uncorrected.hlog')).corrected.percentile(99) / 1e9",
    ), {
        0.00104: "That is what the tool reports: it omits the requests that were due during the freeze.",
        6: "That is the maximum, the length of the freeze. The question asks for the p99.",
        4.02: "That is p90. The question asks for p99.",
        0.0086: "That is the reported p99.9. It omits the freeze, too.",
        0.038: "That is the p99 of the built-in log. Set PATH, and run the lab again.",
        5.985: "That is p99.9. The question asks for p99.",
    }, (
        "Too low: the freeze took 6 of 20 s, so far more than a hundredth of the users met it.",
        "Too high: only the first of those who met the freeze waited that long.",
    )),
    "12.3": Exercise("stalls", 0, "", (
        "A histogram counts how many requests took how long. What does it not record?",
        "Each percentile, the maximum and the mean follow from counts. One of the four needs times.",
        "stalls: lk.find_stalls needs a log or samples, and a histogram of the same run is refused",
    ), {
        "p99": "A percentile follows from the counts: it is a place in the sorted list.",
        "maximum": "A histogram has its highest bucket, which is not empty.",
        "mean": "The mean follows from the counts, but for the width of the buckets.",
        "all": "Counts are enough for each percentile, the maximum and the mean.",
        "none": "A histogram has lost when each request was sent.",
        "max": "A histogram has its highest bucket, which is not empty.",
        "average": "The mean follows from the counts, but for the width of the buckets.",
        "median": "A percentile follows from the counts: it is a place in the sorted list.",
        "p99.9": "A percentile follows from the counts: it is a place in the sorted list.",
        "count": "The mean follows from the counts, but for the width of the buckets.",
        "another word": "Everything that is a place in the sorted list, or a sum over it, follows from the counts. One of the four words does not.",
    }),
    "13.1": Exercise(1000 / 3, 4, "/s", (
        "While every request fails, each of them is sent as often as its client tries.",
        "The queue gets shorter if fewer requests arrive than the service answers: new requests × tries < 1,000 per second.",
        "1000 / 3",
    ), {
        1000: "That is what the service answers. A request that fails arrives more than once.",
        250: "That is for four tries: one request and three retries. Here it is three in all.",
        500: "That is for two tries. Here it is three in all.",
        666.7: "That is how many of 1,000 places the retries take. The question is how many new requests there may be.",
        3000: "That multiplies. More arrive than are new, so there must be fewer new ones than are answered.",
        700: "That is the load of the lesson, at which it is trapped.",
    }, (
        "The queue gets shorter at a higher rate, too: three times this rate is less than 1,000.",
        "Three times this rate is more than the service answers, so the queue grows.",
    )),
    "13.2": Exercise(1.5, 0.03, "", (
        "The function returns two things: the response times, and the sends per request.",
        "At half the load the hedge has more to do than 5 %: requests that wait in a queue are hedged, too.",
        "hedge(0.5, P95)[1]",
    ), {
        1.05: "That is with the budget of 5 %, or if nobody had to wait in a queue.",
        1.07: "That is at a tenth of the load.",
        1.99: "That is at 70 % of the load, where nearly every request is sent twice.",
        1.16: "That is at 30 % of the load.",
        0.5: "Those are the second requests. Each request is also sent a first time.",
        2: "That would be every request sent twice. At half the load some are answered in time.",
    }, (
        "Too few: a queue makes more requests late than the 5 % of an idle replica.",
        "Too many: at half the load about half of the requests are answered before their hedge.",
    )),
    "13.3": Exercise(42.9, 0.5, "%", (
        "A budget of b lets each request be followed by b retries on average, at most.",
        "700 requests per second and their retries are 700 × (1 + b). When is that 1,000?",
        "100 * (1000 / 700 - 1)",
    ), {
        30: "That is the room that is left, as a share of 1,000. A budget is a share of the requests, which are 700.",
        70: "That is the load. The question is how much the retries may add to it.",
        300: "That is how many retries per second fit. The question asks for their share of the 700 requests, in per cent.",
        142.9: "That is all that arrives, as a share of the 700. The question asks for the retries alone.",
        10: "That is the budget of the lesson, with which 770 per second arrive.",
        100: "Then 1,400 per second arrive.",
        400: "That is without a budget: four tries.",
    }, (
        "With that budget fewer than 1,000 per second arrive.",
        "With less more than 1,000 per second arrive already.",
    )),
}  # fmt: skip
