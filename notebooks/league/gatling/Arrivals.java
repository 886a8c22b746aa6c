import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.*;

/** A GET by each of -Drate users who arrive per second (open), or by -Dusers in a loop (closed). */
public class Arrivals extends Simulation {
  {
    int seconds = Integer.getInteger("seconds", 10);
    var get = http("get").get(System.getProperty("url"));
    var once = scenario("arrivals").exec(get);
    var loop = scenario("users").during(seconds).on(exec(get));
    boolean open = "open".equals(System.getProperty("model", "open"));
    var protocol = http.shareConnections();
    setUp(
        open
            ? once.injectOpen(constantUsersPerSec(Integer.getInteger("rate", 200)).during(seconds))
            : loop.injectOpen(atOnceUsers(Integer.getInteger("users", 4))))
      .protocols(protocol);
  }
}
