import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.zip.CRC32C;
import org.apache.kudu.*;
import org.apache.kudu.client.*;
import org.apache.kudu.util.DateUtil;

/** Scans of all rows of a table, in any order. */
final class Scans {
  private final KuduClient client;
  private final KuduTable table;
  private final AsyncKuduScanner.RowDataFormat format;
  private final List<String> columns;

  Scans(AsyncKuduClient async, String table, String format, String columns) throws KuduException {
    client = async.syncClient();
    this.table = client.openTable(table);
    this.format = AsyncKuduScanner.RowDataFormat.valueOf(format);
    this.columns = columns.equals("-") ? null : List.of(columns.split(","));
  }

  private interface Sink {
    void row(RowResult r);
  }

  private KuduScanner open() {
    KuduScanner.KuduScannerBuilder b = client.newScannerBuilder(table).prefetching(true);
    if (columns != null) {
      b.setProjectedColumnNames(columns);
    }
    KuduScanner s = b.build();
    s.setRowDataFormat(format);
    s.setReuseRowResult(true);
    return s;
  }

  private void drain(Sink sink) throws KuduException {
    KuduScanner s = open();
    while (s.hasMoreRows()) {
      RowResultIterator rows = s.nextRows();
      while (rows.hasNext()) {
        sink.row(rows.next());
      }
    }
    s.close();
  }

  /** Each value of a row adds 8 bytes, big-endian: a number, or the length of a string, whose bytes follow. */
  String check() throws Exception {
    CRC32C crc = new CRC32C();
    ByteBuffer number = ByteBuffer.allocate(8);
    long[] counts = new long[2]; // rows, and the sum
    drain(r -> {
      crc.reset();
      List<ColumnSchema> all = r.getColumnProjection().getColumns();
      for (int i = 0; i < all.size(); i++) {
        byte[] text = null;
        switch (all.get(i).getType()) {
          case INT64:
            number.putLong(0, r.getLong(i));
            break;
          case INT32:
            number.putLong(0, r.getInt(i));
            break;
          case DECIMAL:
            number.putLong(0, r.getDecimal(i).unscaledValue().longValueExact());
            break;
          case DATE:
            number.putLong(0, DateUtil.sqlDateToEpochDays(r.getDate(i)));
            break;
          default:
            text = r.getString(i).getBytes(StandardCharsets.UTF_8);
            number.putLong(0, text.length);
        }
        crc.update(number.array(), 0, 8);
        if (text != null) {
          crc.update(text, 0, text.length);
        }
      }
      counts[0]++;
      counts[1] += crc.getValue();
    });
    return counts[0] + " " + counts[1];
  }

  /** Only counts the rows: what is measured is the server. */
  String scan(long least, long millis) throws KuduException {
    long rows = 0;
    long begin = System.nanoTime();
    for (long passes = 0; passes < least || System.nanoTime() - begin < millis * 1_000_000; passes++) {
      KuduScanner s = open();
      while (s.hasMoreRows()) {
        rows += s.nextRows().getNumRows();
      }
      s.close();
    }
    return rows + " " + (System.nanoTime() - begin);
  }

  /** Adds up the values; of a string its length and its last byte. */
  String use(long least, long millis) throws KuduException {
    Type[] types = projection();
    long[] counts = new long[2]; // rows, and the sum of the last pass
    long begin = System.nanoTime();
    for (long passes = 0; passes < least || System.nanoTime() - begin < millis * 1_000_000; passes++) {
      counts[1] = 0;
      drain(r -> {
        long sum = 0;
        for (int i = 0; i < types.length; i++) {
          switch (types[i]) {
            case INT64:
              sum += r.getLong(i);
              break;
            case INT32:
              sum += r.getInt(i);
              break;
            default:
              String text = r.getString(i);
              sum += text.length() + text.charAt(text.length() - 1);
          }
        }
        counts[0]++;
        counts[1] += sum;
      });
    }
    return counts[0] + " " + (System.nanoTime() - begin) + " " + counts[1];
  }

  private Type[] projection() {
    Schema all = table.getSchema();
    if (columns == null) {
      return all.getColumns().stream().map(ColumnSchema::getType).toArray(Type[]::new);
    }
    return columns.stream().map(c -> all.getColumn(c).getType()).toArray(Type[]::new);
  }
}
