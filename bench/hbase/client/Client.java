import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.fs.HFileSystem;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileScanner;
import org.apache.hadoop.hbase.io.hfile.LruBlockCache;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Reads an HFile with HBase's own reader, and measures the time.
 */
final class Client implements Requests.Client {
  private static final int BLOCK_BYTES = 64 << 10;

  private final Configuration conf = HBaseConfiguration.create();
  private HFile.Reader reader;
  private byte[][] rows;
  private long sum;
  private long cells;

  public static void main(String[] args) {
    Requests.serve(Client::new);
  }

  @Override
  public String answer(String[] q, BufferedReader in) throws IOException {
    switch (q[0]) {
      case "open": // FILE, BYTES of the block cache, 0 for none
        open(q[1], Long.parseLong(q[2]));
        return "";
      case "check": // answered by the number of cells and the CRC32C of all their bytes
        return check();
      case "scan": // PASSES at least, MILLISECONDS at least; answered by the passes, the nanoseconds, and the sum of one pass
        return scan(Long.parseLong(q[1]), Long.parseLong(q[2]));
      case "rows": // NUMBER; as many lines follow
        rows = new byte[Integer.parseInt(q[1])][];
        for (int i = 0; i < rows.length; i++) {
          rows[i] = in.readLine().getBytes(StandardCharsets.UTF_8);
        }
        return "";
      case "warm": // MILLISECONDS at least; gets each row, twice at least; answered by the number of cells and the sum of one round
        return warm(Long.parseLong(q[1]));
      case "get": // GETS at least, MILLISECONDS at least; answered by the gets and the nanoseconds
        return get(Long.parseLong(q[1]), Long.parseLong(q[2]));
      default:
        throw new IllegalArgumentException("unknown request " + q[0]);
    }
  }

  private void open(String file, long cacheBytes) throws IOException {
    conf.setBoolean("hbase.hfile.prefetch.enabled", false);
    conf.set("fs.defaultFS", "file:///");
    CacheConfig cache = cacheBytes == 0 ? CacheConfig.DISABLED : new CacheConfig(conf, new LruBlockCache(cacheBytes, BLOCK_BYTES));
    reader = HFile.createReader(new HFileSystem(conf, true), new Path(new File(file).getAbsoluteFile().toURI()), cache, true, conf);
  }

  /** The checksum of a cell, the same as for the other readers. */
  private void add(Cell c) {
    int value = c.getValueLength();
    sum += c.getTimestamp() + value + (c.getRowArray()[c.getRowOffset() + c.getRowLength() - 1] & 0xff)
        + (c.getQualifierArray()[c.getQualifierOffset() + c.getQualifierLength() - 1] & 0xff)
        + (c.getValueArray()[c.getValueOffset() + value - 1] & 0xff);
    cells++;
  }

  private String check() throws IOException {
    CRC32C crc = new CRC32C();
    cells = 0;
    HFileScanner s = reader.getScanner(conf, false, false);
    if (s.seekTo()) {
      do {
        Cell c = s.getCell();
        crc.update(c.getRowArray(), c.getRowOffset(), c.getRowLength());
        crc.update(c.getFamilyArray(), c.getFamilyOffset(), c.getFamilyLength());
        crc.update(c.getQualifierArray(), c.getQualifierOffset(), c.getQualifierLength());
        crc.update(Bytes.toBytes(c.getTimestamp()));
        crc.update(c.getTypeByte());
        crc.update(c.getValueArray(), c.getValueOffset(), c.getValueLength());
        cells++;
      } while (s.next());
    }
    s.close();
    return cells + " " + crc.getValue();
  }

  private String scan(long least, long millis) throws IOException {
    long passes = 0;
    long begin = System.nanoTime();
    for (; passes < least || System.nanoTime() - begin < millis * 1_000_000; passes++) {
      sum = 0;
      HFileScanner s = reader.getScanner(conf, false, false);
      if (s.seekTo()) {
        do {
          add(s.getCell());
        } while (s.next());
      }
      s.close();
    }
    return passes + " " + (System.nanoTime() - begin) + " " + sum;
  }

  /** Moves the scanner to the first cell at or after the beginning of a row, as HBase's store file scanner does. */
  private boolean seek(HFileScanner s, byte[] row) throws IOException {
    int code = s.seekTo(KeyValueUtil.createFirstOnRow(row));
    if (code == HConstants.INDEX_KEY_MAGIC) {
      return true;
    }
    return code < 0 ? s.seekTo() : code == 0 || s.next();
  }

  private void getRow(HFileScanner s, byte[] row) throws IOException {
    for (boolean on = seek(s, row); on; on = s.next()) {
      Cell c = s.getCell();
      if (!Bytes.equals(c.getRowArray(), c.getRowOffset(), c.getRowLength(), row, 0, row.length)) {
        return;
      }
      add(c);
    }
  }

  private String warm(long millis) throws IOException {
    HFileScanner s = reader.getScanner(conf, true, true);
    long begin = System.nanoTime();
    for (int pass = 0; pass < 2 || System.nanoTime() - begin < millis * 1_000_000; pass++) {
      sum = cells = 0;
      for (byte[] row : rows) {
        getRow(s, row);
      }
    }
    return cells + " " + sum;
  }

  private String get(long least, long millis) throws IOException {
    HFileScanner s = reader.getScanner(conf, true, true);
    Random random = new Random(1);
    long begin = System.nanoTime();
    long done = 0;
    for (; done < least || done % 16 != 0 || System.nanoTime() - begin < millis * 1_000_000; done++) {
      getRow(s, rows[random.nextInt(rows.length)]);
    }
    return done + " " + (System.nanoTime() - begin);
  }
}
