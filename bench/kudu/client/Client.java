import java.io.*;
import java.nio.charset.StandardCharsets;
import org.apache.kudu.client.*;

/**
 * Executes the requests of the benchmarks with Kudu's client.
 *
 * <p>A request is a line on stdin: a name and its arguments. The answer is a line on stdout that begins with "ok", for some followed by numbers; or
 * "error" with the reason, after which the program ends, as it does at the end of stdin.
 */
final class Client {
  private final PrintStream out;
  private AsyncKuduClient async;
  private Scans scans;
  private Writes writes;

  private Client(PrintStream out) {
    this.out = out;
  }

  public static void main(String[] args) throws Exception {
    PrintStream stdout = System.out;
    System.setOut(System.err); // libraries must not write between the answers
    Client c = new Client(stdout);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try {
      String line;
      while ((line = in.readLine()) != null) {
        c.print(("ok " + c.answer(line.split(" "))).stripTrailing());
      }
    } catch (Throwable e) {
      c.print("error " + e.toString().replace('\n', ' '));
      System.exit(1);
    }
    System.exit(0);
  }

  private void print(String line) {
    out.print(line + "\n");
    out.flush();
  }

  private String answer(String[] q) throws Exception {
    switch (q[0]) {
      case "open": // MASTER
        async = new AsyncKuduClient.AsyncKuduClientBuilder(q[1]).defaultOperationTimeoutMs(120_000).defaultAdminOperationTimeoutMs(120_000).build();
        return "";
      case "scans": // TABLE, FORMAT of rows, COLUMNS with commas, "-" for all; the scans that follow
        scans = new Scans(async, q[1], q[2], q[3]);
        return "";
      case "check": // answered by the number of rows and the sum of their CRC32C
        return scans.check();
      case "scan": // PASSES at least, MILLISECONDS at least; answered by the rows of all passes and the nanoseconds
        return scans.scan(Long.parseLong(q[1]), Long.parseLong(q[2]));
      case "use": // likewise, and by the sum of the values of a pass
        return scans.use(Long.parseLong(q[1]), Long.parseLong(q[2]));
      case "rows": // FILE, NUMBER of its first rows
        writes = new Writes(async, q[1], Integer.parseInt(q[2]));
        return "";
      case "write": // TABLE, ROWS, STEP of the order keys of a repetition; answered by the nanoseconds
        return writes.write(q[1], Long.parseLong(q[2]), Long.parseLong(q[3]));
      default:
        throw new IllegalArgumentException("unknown request " + q[0]);
    }
  }
}
