import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;

/**
 * The main program of a client that answers requests.
 *
 * <p>A request is a line of words on stdin, the answer a line on stdout that begins with "ok", or "error" with the reason, after which the program
 * ends, as it does at the end of stdin.
 */
final class Requests {
  private Requests() {}

  /** What answers requests. */
  interface Client {
    /** Returns the answer to a request. More lines of it may follow in the input. */
    String answer(String[] words, BufferedReader in) throws Exception;
  }

  /** Creates a client, and answers requests until the program ends. */
  static void serve(Callable<Client> create) {
    PrintStream stdout = System.out;
    System.setOut(System.err); // libraries must not write between the answers
    try {
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      Client c = create.call();
      for (String line; (line = in.readLine()) != null; ) {
        stdout.println("ok " + c.answer(line.split(" "), in));
        stdout.flush();
      }
    } catch (Throwable e) {
      e.printStackTrace();
      stdout.println("error " + e.toString().replace('\n', ' '));
      stdout.flush();
      Runtime.getRuntime().halt(1);
    }
    Runtime.getRuntime().halt(0);
  }
}
