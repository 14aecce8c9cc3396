import java.io.*;
import java.util.*;
import org.apache.kudu.client.*;

/**
 * Inserts of rows of lineitem that are prepared in advance, from a file of records:
 *
 * <pre>
 * 4 bytes   length of the key, little-endian: 12
 * 4 bytes   length of the value
 *           key: order key and line number, big-endian
 *           value: six integers of 8 bytes and three of 4, little-endian, then five strings, each after its length as a varint
 * </pre>
 */
final class Writes {
  // Indexes of the columns in the table.
  private static final int[] LONGS = {2, 3, 4, 5, 6, 7};
  private static final int[] INTS = {10, 11, 12};
  private static final int[] TEXTS = {8, 9, 13, 14, 15};

  private static final int BUFFER = 10_000; // rows

  private static final class Row {
    long order;
    int line;
    final long[] longs = new long[LONGS.length];
    final int[] ints = new int[INTS.length];
    final byte[][] texts = new byte[TEXTS.length][];
  }

  private final KuduClient client;
  private final Row[] rows;

  Writes(AsyncKuduClient async, String file, int n) throws IOException {
    client = async.syncClient();
    rows = new Row[n];
    try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(file)))) {
      for (int i = 0; i < n; i++) {
        rows[i] = read(in);
      }
    }
  }

  private static Row read(DataInputStream in) throws IOException {
    Row r = new Row();
    in.readLong(); // lengths
    r.order = in.readLong();
    r.line = in.readInt();
    for (int i = 0; i < LONGS.length; i++) {
      r.longs[i] = Long.reverseBytes(in.readLong());
    }
    for (int i = 0; i < INTS.length; i++) {
      r.ints[i] = Integer.reverseBytes(in.readInt());
    }
    for (int i = 0; i < TEXTS.length; i++) {
      int n = 0;
      for (int shift = 0; ; shift += 7) {
        byte b = in.readByte();
        n |= (b & 0x7f) << shift;
        if (b >= 0) {
          break;
        }
      }
      r.texts[i] = new byte[n];
      in.readFully(r.texts[i]);
    }
    return r;
  }

  /** Strings are given as UTF-8, which the client does not have to encode. */
  String write(String name, long n, long step) throws IOException, KuduException {
    KuduTable table = client.openTable(name);
    long begin = System.nanoTime();
    KuduSession s = client.newSession();
    s.setFlushMode(SessionConfiguration.FlushMode.AUTO_FLUSH_BACKGROUND);
    s.setMutationBufferSpace(BUFFER);
    for (long i = 0; i < n; i++) {
      Row r = rows[(int) (i % rows.length)];
      Insert op = table.newInsert();
      PartialRow row = op.getRow();
      row.addLong(0, r.order + i / rows.length * step);
      row.addInt(1, r.line);
      for (int c = 0; c < LONGS.length; c++) {
        row.addLong(LONGS[c], r.longs[c]);
      }
      for (int c = 0; c < INTS.length; c++) {
        row.addInt(INTS[c], r.ints[c]);
      }
      for (int c = 0; c < TEXTS.length; c++) {
        row.addStringUtf8(TEXTS[c], r.texts[c]);
      }
      s.apply(op);
    }
    s.close();
    if (s.countPendingErrors() > 0) {
      throw new IOException(s.getPendingErrors().getRowErrors()[0].toString());
    }
    return String.valueOf(System.nanoTime() - begin);
  }
}
