import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kudu.client.*;

/**
 * Rows and keys in the form of the benchmarks' input files:
 *
 * <pre>
 * 4 bytes   length of the key, little-endian: 12, or 0 after the last record
 * 4 bytes   length of the value; 0 if only keys are sent
 *           key: order key and line number, big-endian
 *           value: six integers of 8 bytes and three of 4, little-endian, then five strings, each after its length as a varint
 * </pre>
 */
final class Records {
  // Indexes of the columns in the table.
  static final int[] LONGS = {2, 3, 4, 5, 6, 7};
  static final int[] INTS = {10, 11, 12};
  static final int[] TEXTS = {8, 9, 13, 14, 15};

  private final DataInputStream in;
  private final DataOutputStream out;
  private byte[] buf = new byte[1 << 10];
  private int at;
  private int length;
  Key key;

  Records(DataInputStream in, DataOutputStream out) {
    this.in = in;
    this.out = out;
  }

  /** Reads the next record; false after the last one. */
  boolean next() throws IOException {
    int keyLength = Integer.reverseBytes(in.readInt());
    int valueLength = Integer.reverseBytes(in.readInt());
    if (keyLength == 0) {
      return false;
    }
    if (keyLength != 12 || valueLength < 0 || valueLength > 1 << 20) {
      throw new IOException("a record of " + keyLength + " and " + valueLength + " bytes");
    }
    key = new Key(in.readLong(), in.readInt());
    if (buf.length < valueLength) {
      buf = new byte[2 * valueLength];
    }
    in.readFully(buf, 0, valueLength);
    at = 0;
    length = valueLength;
    return true;
  }

  List<Key> keys() throws IOException {
    List<Key> keys = new ArrayList<>();
    while (next()) {
      keys.add(key);
    }
    return keys;
  }

  /** Fills a row of the table from the record. */
  void fill(PartialRow row) {
    row.addLong(0, key.order);
    row.addInt(1, key.line);
    for (int c : LONGS) {
      row.addLong(c, little(8));
    }
    for (int c : INTS) {
      row.addInt(c, (int) little(4));
    }
    for (int c : TEXTS) {
      int n = 0;
      for (int shift = 0; ; shift += 7) {
        byte b = buf[at++];
        n |= (b & 0x7f) << shift;
        if (b >= 0) {
          break;
        }
      }
      row.addStringUtf8(c, Arrays.copyOfRange(buf, at, at + n));
      at += n;
    }
    if (at != length) {
      throw new IllegalStateException("a record has " + length + " bytes, its fields " + at);
    }
  }

  private long little(int bytes) {
    long v = 0;
    for (int i = 0; i < bytes; i++) {
      v |= (buf[at++] & 0xffL) << (8 * i);
    }
    return v;
  }

  /** Writes a row of all columns as a record. */
  void write(RowResult r) throws IOException {
    byte[][] texts = new byte[TEXTS.length][];
    int n = 8 * LONGS.length + 4 * INTS.length;
    for (int i = 0; i < texts.length; i++) {
      texts[i] = r.getString(TEXTS[i]).getBytes(StandardCharsets.UTF_8);
      n += texts[i].length + 1;
      for (int rest = texts[i].length >>> 7; rest > 0; rest >>>= 7) {
        n++;
      }
    }
    out.writeInt(Integer.reverseBytes(12));
    out.writeInt(Integer.reverseBytes(n));
    out.writeLong(r.getLong(0));
    out.writeInt(r.getInt(1));
    for (int c : LONGS) {
      out.writeLong(Long.reverseBytes(r.getLong(c)));
    }
    for (int c : INTS) {
      out.writeInt(Integer.reverseBytes(r.getInt(c)));
    }
    for (byte[] text : texts) {
      int rest = text.length;
      for (; rest >= 0x80; rest >>>= 7) {
        out.write(rest & 0x7f | 0x80);
      }
      out.write(rest);
      out.write(text);
    }
  }

  /** Writes the mark for the end of the records. */
  void end() throws IOException {
    out.writeLong(0);
  }
}
