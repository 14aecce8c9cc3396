import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;

/**
 * Runs the corpus' tools/carbondata/check many times in one process, with the arguments in a line of stdin, separated by tabs. After what it prints
 * follows a line with "exit", its exit status, and what it wrote to stderr.
 */
final class Judge {
  public static void main(String[] none) throws Exception {
    Method run = Class.forName("oribi.carbondata.Check").getDeclaredMethod("run", String[].class);
    run.setAccessible(true);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream stderr = System.err;
    for (String line; (line = in.readLine()) != null; ) {
      ByteArrayOutputStream complaint = new ByteArrayOutputStream();
      System.setErr(new PrintStream(complaint, true, StandardCharsets.UTF_8));
      Object exit = run.invoke(null, (Object) line.split("\t"));
      System.setErr(stderr);
      System.out.println("exit " + exit + " " + complaint.toString(StandardCharsets.UTF_8).replace('\n', ' '));
      System.out.flush();
    }
    Runtime.getRuntime().halt(0);
  }
}
