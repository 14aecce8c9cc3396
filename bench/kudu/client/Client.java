import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kudu.client.*;

/**
 * Executes the requests of the benchmarks on a Kudu table.
 *
 * <p>A request is a line on stdin: a name and numbers, for some followed by records. The answer is a line on stdout that begins with "ok", for some
 * followed by records; or "error" with the reason, after which the program ends, as it does at the end of stdin. See Records for their form.
 */
final class Client {
  private final DataInputStream in;
  private final DataOutputStream out;
  private final Records records;
  private AsyncKuduClient async;
  private Lineitem table;
  private Calls calls;
  private Scans scans;

  private Client(InputStream in, OutputStream out) {
    this.in = new DataInputStream(new BufferedInputStream(in, 1 << 20));
    this.out = new DataOutputStream(new BufferedOutputStream(out, 1 << 16));
    records = new Records(this.in, this.out);
  }

  public static void main(String[] args) throws Exception {
    PrintStream stdout = System.out;
    System.setOut(System.err); // libraries must not write between the answers
    Client c = new Client(System.in, stdout);
    try {
      String line;
      while ((line = c.line()) != null) {
        c.answer(line.split(" "));
        c.out.flush();
      }
    } catch (Throwable e) {
      c.print("error " + e.toString().replace('\n', ' '));
      c.out.flush();
      System.exit(1);
    }
    System.exit(0);
  }

  private String line() throws IOException {
    ByteArrayOutputStream b = new ByteArrayOutputStream();
    for (int c; (c = in.read()) != '\n'; b.write(c)) {
      if (c < 0) {
        return null;
      }
    }
    return b.toString(StandardCharsets.UTF_8);
  }

  private void print(String line) throws IOException {
    out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
  }

  private void connect(String master) {
    async = new AsyncKuduClient.AsyncKuduClientBuilder(master).defaultOperationTimeoutMs(120_000).defaultAdminOperationTimeoutMs(120_000).build();
  }

  private void answer(String[] q) throws Exception {
    switch (q[0]) {
      case "open": // MASTER
        connect(q[1]);
        table = Lineitem.open(async);
        print("ok");
        return;
      case "scans": // MASTER TABLE FORMAT of rows, COLUMNS with commas, "-" for all; the scans that follow
        connect(q[1]);
        scans = new Scans(async, q[2], q[3], q[4]);
        print("ok");
        return;
      case "check": // answered by the number of rows and the sum of their CRC32C
        print("ok " + scans.check());
        return;
      case "scan": // PASSES at least, MILLISECONDS at least; answered by the rows of all passes and the nanoseconds
        print("ok " + scans.scan(Long.parseLong(q[1]), Long.parseLong(q[2])));
        return;
      case "load": // rows follow
        print("ok " + table.load(records));
        return;
      case "upsert": // rows follow
        table.upsert(records);
        print("ok");
        return;
      case "tax": // VALUE, keys follow
        table.updateTax(records, Long.parseLong(q[1]));
        print("ok");
        return;
      case "get": // keys follow; answered by rows
        Lineitem.Sink send = r -> records.write(r);
        List<Key> keys = records.keys();
        print("ok");
        if (keys.size() == 1) {
          table.get(keys.get(0), send);
        } else {
          table.getMany(keys, send);
        }
        records.end();
        return;
      case "range": // NUMBER, a key follows; answered by rows
        Key from = records.keys().get(0);
        print("ok");
        table.range(from, Integer.parseInt(q[1]), r -> records.write(r));
        records.end();
        return;
      case "query": // NAME and what it compares with; answered by lines: the group's key, a tab, its sums
        List<String> lines = new Query(table, q).run();
        print("ok " + lines.size());
        for (String l : lines) {
          print(l);
        }
        return;
      case "warm": // CALL, KEYS of each, MILLISECONDS at least, keys follow; answered by the checksum
        calls = new Calls(table, q[1], records.keys(), Integer.parseInt(q[2]));
        print("ok " + calls.warm(Long.parseLong(q[3])));
        return;
      case "run": // CALLS at least, MILLISECONDS at least; answered by the number of calls and the nanoseconds that they took
        long[] ran = calls.run(Long.parseLong(q[1]), Long.parseLong(q[2]));
        print("ok " + ran[0] + " " + ran[1]);
        return;
      default:
        throw new IllegalArgumentException("unknown request " + q[0]);
    }
  }
}
